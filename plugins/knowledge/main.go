// Command knowledge owns the bundled agent that keeps what agents learn, correct and
// deprecate, with who said it and when, and finds it again by domain, scope and tags. It
// must not know what a statement means: it compares texts and draws no conclusion.
package main

import (
	"encoding/json"
	"errors"

	"skep/plugins/internal/question"
	skep "skep/sdk/go"
)

// Knowledge is the agent.
type Knowledge struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "knowledge",
	Version:     "1.0.0",
	Description: "Keeps statements by domain, scope and tags with their history and provenance, and answers queries.",
	Agents: []skep.AgentInfo{{
		Name:        "knowledge",
		Description: `Send {"message_type": "knowledge_update" | "context_share" | "knowledge_query", "payload": {…}}.`,
		Params: []byte(`{"type":"object","additionalProperties":false,"properties":{"scope":{"enum":["agent","instance"],"default":"agent",` +
			`"description":"Who shares the statements: this agent alone, or all agents of the instance."}}}`),
	}},
	Requests: []skep.Request{{Allow: "kv", Value: []byte(`["agent", "{params.scope}"]`), Reason: "to keep the statements"}},
}, Knowledge{})

func main() {}

// answer is the payload of a task_response.
type answer struct {
	Status string `json:"status"` // completed or rejected
	Result any    `json:"result,omitempty"`
	Error  *fault `json:"error,omitempty"`
}

type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Turn keeps or finds statements, and answers.
func (Knowledge) Turn(t *skep.Turn) error {
	m := &t.Message
	if m.FromSystem() || m.Type == skep.TypeResponse || m.Type == skep.TypeBroadcastComplete || isWithdrawal(m) {
		t.Log("not handled", "from", m.Sender.Name, "subject", m.Subject)
		return nil
	}
	s, err := newCollection(t)
	if err != nil {
		return err
	}
	a := answer{Status: "completed"}
	a.Result, err = s.handle(m)
	if errors.Is(err, skep.Cancelled) {
		return err
	}
	if err != nil {
		a.Status, a.Error = "rejected", faultOf(err)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	switch {
	case m.Type == skep.TypeBroadcast:
		return t.AcknowledgeBroadcast(question.Clip(string(raw), 1000))
	case m.FromUser():
		return t.TaskComplete(string(raw))
	}
	return t.SendResponse(m.Sender.Name, "Re: "+question.Clip(m.Subject, maxSubject), string(raw))
}

// isWithdrawal reports whether a message withdraws a request. An answer to it would be one to the
// request, which may wait still.
func isWithdrawal(m *skep.Message) bool {
	_, withdraws := question.Withdrawn(m.Body)
	return m.Type == skep.TypeInterrupt && withdraws
}

// Bounds of what an answer repeats of its question, in bytes.
const (
	maxSubject = 200
	maxText    = 4 << 10 // of an error
)

func faultOf(err error) *fault {
	var e *skep.Error
	if !errors.As(err, &e) {
		return &fault{skep.Internal.String(), question.Clip(err.Error(), maxText)}
	}
	code := e.Code.String()
	if e.Code == skep.Invalid {
		code = "INVALID_FORMAT"
	}
	return &fault{code, question.Clip(e.Message, maxText)}
}

func invalid(format string, args ...any) error {
	return skep.Errorf(skep.Invalid, format, args...)
}

// handle does what a message asks. The type may be left out where the payload shows it.
func (s *collection) handle(m *skep.Message) (any, error) {
	var c struct {
		Type    string          `json:"message_type"`
		Payload json.RawMessage `json:"payload"`
	}
	if question.IsLong(m) {
		return nil, skep.Errorf(skep.Limit, "the payload is longer than a message, which has 256 KiB: send it in several")
	}
	if err := json.Unmarshal([]byte(m.Body), &c); err != nil {
		return nil, invalid(`the body must be {"message_type": "knowledge_query", "payload": {…}}: %v`, err)
	}
	switch c.Type {
	case "knowledge_update":
		return s.update(c.Payload)
	case "context_share":
		return s.share(c.Payload)
	case "knowledge_query":
		return s.query(c.Payload)
	}
	return nil, invalid("message_type is %.60q; it is knowledge_update, context_share or knowledge_query", c.Type)
}

// decode reads a payload.
func decode(raw json.RawMessage, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return invalid("payload.%s must not be a JSON %s", wrong.Field, wrong.Value)
		}
		return invalid("payload must be an object: %v", err)
	}
	return nil
}
