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

// Discovering swarms asks other hosts, so that the executor does it as it does
// every effect. Of the mail world it is a call with a result, no more.

// Discovers reports whether the agent may discover swarms in this turn.
func (t *Turn) Discovers() bool { return t.granted(mail.ToolDiscoverSwarms) }

// Discovery returns what a call of discover_swarms does, nil for a call that
// [Turn.Mail] does or refuses. It is for the turn's goroutine; what it returns may
// run on any, and returns soon after its context ends.
func (t *Turn) Discovery(req abi.MailRequest) func(context.Context) (abi.MailResponse, *abi.Error) {
	if req.Tool != mail.ToolDiscoverSwarms || t.over != "" || t.stagedN >= maxStaged || !t.Discovers() {
		return nil
	}
	args, err := t.rt.readArgs(req.Tool, req.Args)
	if err != nil {
		return nil
	}
	near, by := t.rt.neighbours, Search{Task: t.task.key, Agent: t.agent.Name}
	return func(ctx context.Context) (abi.MailResponse, *abi.Error) { return discover(ctx, near, by, args.URLs) }
}

// discover asks one host after the other.
func discover(ctx context.Context, near Neighbours, by Search, urls []string) (abi.MailResponse, *abi.Error) {
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
	text := "discovered " + counted(int64(len(names)), "swarm")
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	if why != "" {
		text += "; without an answer: " + why
	}
	return abi.MailResponse{Text: success + text}, nil
}

// Discovered stages what came of a call that was not [Turn.Mail]'s to do. Call is
// its number in the turn.
func (t *Turn) Discovered(call string, req abi.MailRequest, answer []byte, fault *abi.Error) {
	var told abi.MailResponse
	_ = json.Unmarshal(answer, &told) // there is none beside a fault
	e := effect{at: t.clock.Now(), call: abi.Call{ID: t.AskID(call), Name: req.Tool, Args: req.Args}}
	e.result = abi.Result{ID: e.call.ID, OK: fault == nil, Text: told.Text}
	if fault != nil {
		e.result.Text = "ERROR: " + fault.Message
	}
	t.stagedN++
	t.staged = append(t.staged, e)
}
