package main

import (
	"encoding/json"
	"errors"
	"slices"

	skep "skep/sdk/go"
)

// What comes behind the calls of an answer.
const (
	turnEnds = iota
	askAgain
)

// Bounds of an answer's calls and of one result, which is text for a model.
const (
	maxCalls  = 32
	maxResult = 32 << 10
	// maxRefusal bounds what a turn's error tells of a call.
	maxRefusal = 500
)

// result is how one call ended.
type result struct {
	text   string
	failed bool
}

// act makes the calls of an answer: actions and ops beside each other, then mail in
// the order of the calls. The model is asked again when it has results to read or
// faults to mend.
func (m *mind) act(calls []skep.ChatCall) (next int, err error) {
	results := make([]result, len(calls))
	args := make([]json.RawMessage, len(calls))
	for i, c := range calls {
		if i >= maxCalls {
			results[i] = result{"not made: an answer may have 32 calls", true}
		} else if args[i], err = m.kit.arguments(c); err != nil {
			results[i] = result{err.Error(), true}
		}
	}
	acted, err := m.perform(calls, args, results)
	if err != nil {
		return turnEnds, err
	}
	over, told, err := m.send(calls, args, results)
	if err != nil || over {
		return turnEnds, err
	}
	for i, c := range calls {
		if results[i].failed {
			m.done.refused = word(c.Name) + ": " + cut(results[i].text, maxRefusal)
		}
		m.talk = append(m.talk, skep.ChatMessage{Role: skep.RoleTool, ToolCallID: c.ID, Content: results[i].text, Error: results[i].failed})
	}
	if acted || told || slices.ContainsFunc(results, func(r result) bool { return r.failed }) {
		return askAgain, nil
	}
	return turnEnds, nil
}

// perform makes the calls of actions and ops. Calls without arguments are refused
// already.
func (m *mind) perform(calls []skep.ChatCall, args []json.RawMessage, results []result) (acted bool, err error) {
	pending := make([]*skep.Pending, len(calls))
	for i, c := range calls {
		switch {
		case args[i] == nil:
		case m.kit.kinds[c.Name] == kindAction:
			pending[i] = m.turn.Submit(skep.OpAction, skep.ActionCall{Name: c.Name, Args: args[i]})
		case m.kit.kinds[c.Name] == kindOp:
			pending[i] = m.turn.Submit(opTools[c.Name].op, args[i])
		}
		if pending[i] != nil {
			m.show.doing(c.Name)
			acted = true
		}
	}
	for i, p := range pending {
		if p == nil {
			continue
		}
		body, err := p.Bytes()
		if calledOff(err) {
			return true, err
		}
		if results[i], err = answer(body, err); err != nil {
			return true, err
		}
		if m.kit.kinds[calls[i].Name] == kindOp { // the history has mail and actions only
			m.note("called " + calls[i].Name + " " + cut(string(args[i]), maxNote/2) + "\nresult: " + results[i].text)
		}
	}
	return acted, nil
}

// answer makes a result for the model of what an action or op has answered. What
// the host could not do is a result as well; what is no refusal ends the turn.
func answer(body []byte, err error) (result, error) {
	var refused *skep.Error
	switch {
	case errors.As(err, &refused):
		return result{cut(inert(refused.Error()), maxResult), true}, nil
	case err != nil:
		return result{}, err
	}
	return result{cut(inert(plain(body)), maxResult), false}, nil
}

// plain is the text of an answer that is nothing but a text, else its JSON.
func plain(body []byte) string {
	var members map[string]json.RawMessage
	var said string
	if json.Unmarshal(body, &members) == nil && len(members) == 1 && json.Unmarshal(members["text"], &said) == nil {
		return said
	}
	if json.Unmarshal(body, &said) == nil {
		return said
	}
	return string(body)
}

// send makes the MAIL calls. over: nothing can follow; told: the model has
// asked for a text.
func (m *mind) send(calls []skep.ChatCall, args []json.RawMessage, results []result) (over, told bool, err error) {
	for i, c := range calls {
		if args[i] == nil || m.kit.kinds[c.Name] != kindMail {
			continue
		}
		if slices.Contains(ending, c.Name) && slices.ContainsFunc(results, func(r result) bool { return r.failed }) {
			results[i] = result{"not done: another call of the same answer has failed; look at its result first", true}
			continue
		}
		reply, err := m.turn.Tool(c.Name, args[i])
		var refused *skep.Error
		switch {
		case calledOff(err):
			return true, told, err
		case errors.As(err, &refused):
			results[i] = result{cut(inert(refused.Error()), maxResult), true}
			continue
		case err != nil:
			return true, told, err
		}
		m.done.mail++
		results[i] = result{cut(inert(reply.Text), maxResult), false}
		told = told || slices.Contains(telling, c.Name)
		if slices.Contains(ending, c.Name) {
			return true, told, nil
		}
	}
	return false, told, nil
}
