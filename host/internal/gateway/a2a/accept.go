package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
)

// accept takes the message of a request and returns the exchange of its task.
func (h requests) accept(ctx context.Context, req *a2a.SendMessageRequest) (*call, gateway.Exchange, error) {
	c, err := h.callOf(ctx, req.Tenant)
	if err == nil {
		err = c.checkAgent()
	}
	if err != nil {
		if c != nil {
			h.record(c, gateway.Exchange{}, "SendMessage", nil, err)
		}
		return nil, gateway.Exchange{}, err
	}
	raw, err := json.Marshal(req.Message)
	if err != nil {
		return c, gateway.Exchange{}, invalid("the message cannot be written as JSON")
	}
	x, err := h.takeMessage(ctx, c, req, raw)
	logged := x
	if req.Message != nil {
		logged.ID = req.Message.ID
	}
	h.record(c, logged, "SendMessage", raw, err)
	if err == nil && req.Config != nil && req.Config.PushConfig != nil {
		_, err = h.keepPush(ctx, c, x, *req.Config.PushConfig) // a repeat does what was left undone
	}
	return c, x, err
}

// takeMessage checks a message and what came with it, and hands it to the runtime.
func (h requests) takeMessage(ctx context.Context, c *call, req *a2a.SendMessageRequest, raw []byte) (x gateway.Exchange, err error) {
	m, config := req.Message, req.Config
	if err := checkMessage(m); err != nil {
		return x, err
	}
	if config != nil {
		if err := checkModes(config.AcceptedOutputModes); err != nil {
			return x, err
		}
		if config.PushConfig != nil {
			if err := h.checkPush(config.PushConfig); err != nil {
				return x, err
			}
		}
	}
	a, err := askOf(c, m, raw)
	if err != nil {
		return x, err
	}
	if m.TaskID != "" {
		return h.continueTask(ctx, c, m, a)
	}
	x, err = h.Runtime.Ask(ctx, c.caller, a)
	return x, h.protocolError(err)
}

// continuation is the note of a message that continues a task, with the question or the
// calls that it answers.
type continuation struct {
	Task     a2a.TaskID    `json:"task"`
	Question string        `json:"question,omitempty"`
	Calls    []waitingCall `json:"calls,omitempty"`
}

// waitingCall is a call that waits for a person, and the id of its question.
type waitingCall struct {
	ID   string `json:"id"`
	Call string `json:"call"`
}

// continuedBy returns the task that an exchange's message continued, "" for none.
func continuedBy(x gateway.Exchange) a2a.TaskID {
	var note continuation
	_ = json.Unmarshal(x.Note, &note)
	return note.Task
}

// continueTask brings a message to the question that its task waits on, and returns the
// exchange of the task.
func (h requests) continueTask(ctx context.Context, c *call, m *a2a.Message, a gateway.Ask) (gateway.Exchange, error) {
	_, x, err := h.find(ctx, agentPath(*c.agent), m.TaskID)
	if err != nil {
		return x, err
	}
	if m.ContextID != "" && m.ContextID != x.Conversation {
		return x, invalid("contextId is not the task's")
	}
	a.Conversation = x.Conversation
	note, err := h.continuationOf(ctx, c, x, m)
	if err != nil {
		return x, err
	}
	a.Kind, a.Answers = gateway.Answers, note.Question
	if len(note.Calls) > 0 {
		a.Kind = gateway.Resumes
		if a.Results, err = resultsOf(m, a.Body, note.Calls); err != nil {
			return x, err
		}
	}
	if a.Note, err = json.Marshal(note); err != nil {
		return x, err
	}
	accepted, err := h.Runtime.Ask(ctx, c.caller, a)
	x.Duplicate = accepted.Duplicate
	if errors.Is(err, gateway.ErrUnknown) {
		return x, unsupported("the question has been answered")
	}
	return x, h.protocolError(err)
}

// continuationOf finds what a message answers. A repeat answers what it did at first: the
// task may have gone on since.
func (h requests) continuationOf(ctx context.Context, c *call, x gateway.Exchange, m *a2a.Message) (continuation, error) {
	before, err := h.Runtime.Find(ctx, c.caller, m.ID)
	if err == nil {
		var note continuation
		_ = json.Unmarshal(before.Note, &note) // a message that began a task has none, and the runtime refuses this one
		note.Task = m.TaskID
		return note, nil
	}
	if !errors.Is(err, gateway.ErrUnknown) {
		return continuation{}, h.protocolError(err)
	}
	now, ok, err := h.Runtime.Look(ctx, x)
	switch {
	case err != nil:
		return continuation{}, h.protocolError(err)
	case !ok:
		return continuation{}, unsupported("the task is working and has asked nothing; to add a message, leave taskId out and keep contextId")
	case now.Outcome != gateway.NeedsInput:
		return continuation{}, unsupported("the task is over; to go on, leave taskId out and keep contextId")
	}
	note, err := answeredBy(m, now.Questions)
	note.Task = m.TaskID
	return note, err
}

// answeredBy returns what a message answers: the question that its metadata names, or
// what is asked alone. Calls wait together and get their results together.
func answeredBy(m *a2a.Message, questions []gateway.Question) (note continuation, err error) {
	named, _ := m.Metadata[metaQuestion].(string)
	ids := make([]string, len(questions))
	for i, q := range questions {
		ids[i] = q.ID
		switch {
		case q.Call != "":
			note.Calls = append(note.Calls, waitingCall{q.ID, q.Call})
		case q.ID == named || named == "" && len(questions) == 1:
			return continuation{Question: q.ID}, nil
		}
	}
	if len(note.Calls) > 0 && (named == "" || len(note.Calls) == 1 && note.Calls[0].ID == named) {
		return note, nil
	}
	return continuation{}, invalid(fmt.Sprintf("metadata.%s must name one of the questions: %s", metaQuestion, strings.Join(ids, ", ")))
}

// resultsOf returns the results that a message has for calls: its text for one call, and
// for several the members of its data part, by the ids of the questions.
func resultsOf(m *a2a.Message, text string, calls []waitingCall) ([]gateway.CallResult, error) {
	if len(calls) == 1 {
		return []gateway.CallResult{{Call: calls[0].Call, Content: text}}, nil
	}
	members := map[string]any{}
	for _, p := range m.Parts {
		if object, ok := p.Data().(map[string]any); ok {
			members = object
		}
	}
	results := make([]gateway.CallResult, len(calls))
	for i, c := range calls {
		switch value := members[c.ID].(type) {
		case nil:
			return nil, invalid(fmt.Sprintf("%d calls wait: the message must have a data part with a member %q and one for each of the others", len(calls), c.ID))
		case string:
			results[i] = gateway.CallResult{Call: c.Call, Content: value}
		default:
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, invalid("a result cannot be written as JSON")
			}
			results[i] = gateway.CallResult{Call: c.Call, Content: string(raw)}
		}
	}
	return results, nil
}
