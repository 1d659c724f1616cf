package rest

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"skep/host/internal/swarm"
)

// Names in kwargs that resume a paused task.
const (
	breakpointResult = "breakpoint_tool_call_result"
	breakpointCaller = "breakpoint_tool_caller"
)

// reservedKwargs are fields of the request itself; a second value in kwargs is
// refused.
var reservedKwargs = []string{
	"body", "message", "subject", "msg_type", "entrypoint", "task_id",
	"show_events", "stream", "resume_from", "kwargs",
}

// maxTimeout is the longest timeout, ten years.
const maxTimeout = 10 * 365 * 24 * time.Hour

// readKwargs reads the options of a post and ignores unknown ones.
func (p *post) readKwargs(kw *object) error {
	for _, name := range reservedKwargs {
		if _, ok := kw.members[name]; ok {
			return badRequest("kwargs must not contain '%s', which is a field of the request", name)
		}
	}
	if raw, ok := kw.get("timeout"); ok {
		seconds, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || seconds <= 0 || seconds > maxTimeout.Seconds() {
			return badRequest("kwargs.timeout must be a positive number of seconds, at most %d", int64(maxTimeout.Seconds()))
		}
		p.Timeout = max(time.Millisecond, time.Duration(seconds*float64(time.Second)))
	}
	if raw, ok := kw.get("max_steps"); ok {
		n, ok := parseInteger(raw)
		if !ok || n <= 0 || n > math.MaxInt32 {
			return badRequest("kwargs.max_steps must be a positive integer or null")
		}
		p.MaxSteps = int(n)
	}
	caller, err := kw.str(breakpointCaller)
	if err != nil {
		return badRequest("kwargs.%v", err)
	}
	if raw, ok := kw.get(breakpointResult); ok {
		if p.results, err = readResults(raw); err != nil {
			return err
		}
		p.results.Caller = caller
	}
	return nil
}

// readResults reads the results of a breakpoint: an object for one call, an array
// for several, either also as a string, or plain text.
func readResults(raw json.RawMessage) (*swarm.Results, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if kind := typeName([]byte(text)); !json.Valid([]byte(text)) || kind != "dict" && kind != "list" {
			return &swarm.Results{One: &text}, nil
		}
		raw = json.RawMessage(text)
	}
	switch typeName(raw) {
	case "dict":
		one, err := readResult(raw, false)
		return &swarm.Results{One: &one.Content}, err
	case "list":
		var each []json.RawMessage
		if json.Unmarshal(raw, &each) != nil {
			break
		}
		out := &swarm.Results{}
		for _, raw := range each {
			one, err := readResult(raw, true)
			if err != nil {
				return nil, err
			}
			out.Each = append(out.Each, one)
		}
		return out, nil
	}
	return nil, badRequest("kwargs.%s must be a string, an object or an array, got %s", breakpointResult, typeName(raw))
}

// readResult reads one result: its text, and in an array its call id.
func readResult(raw json.RawMessage, several bool) (out swarm.CallResult, err error) {
	var one struct {
		Call    *string `json:"call_id"`
		Content *string `json:"content"`
	}
	if json.Unmarshal(raw, &one) != nil || one.Content == nil || several && one.Call == nil {
		if several {
			return out, badRequest("kwargs.%s must have objects with the strings call_id and content", breakpointResult)
		}
		return out, badRequest("kwargs.%s must have the string content", breakpointResult)
	}
	out.Content = *one.Content
	if one.Call != nil {
		out.Call = *one.Call
	}
	return out, nil
}
