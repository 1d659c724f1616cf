package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	skep "skep/sdk/go"
)

// step is one call of a script.
type step struct {
	name string
	args json.RawMessage // a JSON object
}

// parse reads a script; ok is false for any other body.
func parse(body string) (steps []step, ok bool) {
	var pairs [][]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader([]byte(body)))
	if dec.Decode(&pairs) != nil || pairs == nil {
		return nil, false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	for _, pair := range pairs {
		s, ok := parseStep(pair)
		if !ok {
			return nil, false
		}
		steps = append(steps, s)
	}
	return steps, true
}

func parseStep(pair []json.RawMessage) (step, bool) {
	if len(pair) != 2 {
		return step{}, false
	}
	var s step
	if pair[0][0] != '"' || json.Unmarshal(pair[0], &s.name) != nil {
		return step{}, false
	}
	s.args = pair[1]
	return s, s.args[0] == '{'
}

// run makes the calls in order and keeps their texts for those that follow.
func run(t *skep.Turn, steps []step) {
	texts := make([]string, 0, len(steps))
	for _, s := range steps {
		raw, err := call(t, s.name, substitute(s.args, texts))
		if err != nil {
			texts = append(texts, errorText(err))
			continue
		}
		texts = append(texts, resultText(raw))
	}
}

// mailTools are the names MAIL reserves. A host that lacks one of them says so.
var mailTools = map[string]bool{
	"send_request": true, "send_response": true, "send_interrupt": true,
	"send_broadcast": true, "acknowledge_broadcast": true, "ignore_broadcast": true,
	"await_message": true, "help": true, "task_complete": true,
	"send_interswarm_broadcast": true, "discover_swarms": true,
}

// call makes one call: a MAIL tool, an action of this agent, an op, a probe,
// in this order. A name that could be an action goes to the host as one, so
// that the host's refusal can be seen.
func call(t *skep.Turn, name string, args json.RawMessage) (json.RawMessage, error) {
	if mailTools[name] {
		return ask(t, skep.OpMail, map[string]any{"tool": name, "args": args})
	}
	if hasAction(t, name) {
		return action(t, name, args)
	}
	probe, isProbe := probes[name]
	if op, ok := skep.OpByName(name); ok && !isProbe {
		return ask(t, op, args)
	}
	if isProbe {
		return probe(t, args)
	}
	if couldBeAction(name) {
		return action(t, name, args)
	}
	return nil, skep.Errorf(skep.Unsupported, "this host has no %q", name)
}

// couldBeAction reports whether a name has the form of an action's.
func couldBeAction(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 64
}

func hasAction(t *skep.Turn, name string) bool {
	tools, _ := t.Tools() // the host's own
	return slices.ContainsFunc(tools, func(tool skep.Tool) bool { return tool.Name == name })
}

func action(t *skep.Turn, name string, args json.RawMessage) (json.RawMessage, error) {
	return ask(t, skep.OpAction, map[string]any{"name": name, "args": args})
}

func ask(t *skep.Turn, op skep.Op, req any) (json.RawMessage, error) {
	var rsp json.RawMessage
	err := t.Call(op, req, &rsp)
	return rsp, err
}

func errorText(err error) string {
	var e *skep.Error
	if !errors.As(err, &e) {
		e = skep.Errorf(skep.Internal, "%v", err)
	}
	return "ERROR " + e.Error()
}
