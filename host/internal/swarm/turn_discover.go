package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// Discovering swarms calls other hosts, so that the executor runs it as an effect. For
// the mail world it is only a call with a result.

// MayDiscover reports whether the agent may discover swarms in this turn.
func (t *Turn) MayDiscover() bool { return t.hasTool(mail.ToolDiscoverSwarms) }

// DiscoveryCall returns the function for a call of discover_swarms, nil for a call that
// [Turn.CallMailTool] runs or refuses. DiscoveryCall is called on the turn's goroutine;
// the function may run on any, and returns soon after its context ends.
func (t *Turn) DiscoveryCall(req abi.MailRequest) func(context.Context) (abi.MailResponse, *abi.Error) {
	if req.Tool != mail.ToolDiscoverSwarms || t.endedBy != "" || t.stagedN >= maxStaged || !t.MayDiscover() {
		return nil
	}
	args, err := t.rt.readArgs(req.Tool, req.Args)
	if err != nil {
		return nil
	}
	near, by := t.rt.knownSwarms, DiscoveryRequest{Task: t.task.key, Agent: t.agent.Name}
	return func(ctx context.Context) (abi.MailResponse, *abi.Error) { return discover(ctx, near, by, args.URLs) }
}

// discover queries one host after the other.
func discover(ctx context.Context, near KnownSwarms, by DiscoveryRequest, urls []string) (abi.MailResponse, *abi.Error) {
	var names, faults []string
	for _, url := range urls {
		by.URL = url
		found, err := near.Discover(ctx, by)
		if ctx.Err() != nil {
			return abi.MailResponse{}, abi.Errorf(abi.CodeCancelled, abi.OpMail, "cancelled", "the search was called off")
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("%.200q: %v", url, err))
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	why := strings.Join(faults, "; ")
	if len(faults) == len(urls) {
		return abi.MailResponse{}, abi.Errorf(abi.CodeUnavailable, abi.OpMail, "discovery", "no swarms discovered: %s", why)
	}
	text := "discovered " + countNoun(int64(len(names)), "swarm")
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	if why != "" {
		text += "; without an answer: " + why
	}
	return abi.MailResponse{Text: success + text}, nil
}

// StageDiscovery stages the result of a call that [Turn.CallMailTool] does not run.
// call is its number in the turn.
func (t *Turn) StageDiscovery(call string, req abi.MailRequest, answer []byte, fault *abi.Error) {
	var rsp abi.MailResponse
	_ = json.Unmarshal(answer, &rsp) // a fault has no answer
	e := stagedCall{at: t.clock.Now(), call: abi.Call{ID: t.CallID(call), Name: req.Tool, Args: req.Args}}
	e.result = abi.Result{ID: e.call.ID, OK: fault == nil, Text: rsp.Text}
	if fault != nil {
		e.result.Text = "ERROR: " + fault.Message
	}
	t.stagedN++
	t.staged = append(t.staged, e)
}
