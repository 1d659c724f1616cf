package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/schema"
)

// arguments are what a call gives to a tool.
type arguments struct {
	Message    string `json:"message"`
	Subject    string `json:"subject"`
	TaskID     string `json:"task_id"`
	QuestionID string `json:"question_id"`
	// input is what the agent declares, nil if nothing of it was given.
	input json.RawMessage
}

// field returns the argument of a name, nil for one that is not the gateway's.
func (a *arguments) field(name string) *string {
	switch name {
	case "message":
		return &a.Message
	case "subject":
		return &a.Subject
	case "task_id":
		return &a.TaskID
	case "question_id":
		return &a.QuestionID
	}
	return nil
}

// read splits the arguments of a call into the gateway's and the agent's.
func (t tool) read(raw json.RawMessage) (a arguments, err error) {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil || given == nil {
			return a, fmt.Errorf("the arguments are no object")
		}
	}
	theirs, declared := map[string]json.RawMessage{}, t.properties()
	for name, value := range given {
		field := a.field(name)
		switch _, shadowed := declared[name]; {
		case field != nil && !shadowed:
			if json.Unmarshal(value, field) != nil {
				return a, fmt.Errorf("message, subject, task_id and question_id are strings")
			}
		case t.capability != nil:
			theirs[name] = value
		default:
			return a, fmt.Errorf("the argument %q is unknown: the tool takes message, subject, task_id and question_id", name)
		}
	}
	if t.capability == nil || a.TaskID != "" && len(theirs) == 0 {
		return a, nil
	}
	if a.Message != "" {
		return a, fmt.Errorf("the tool takes what its schema has; a message only answers a question, with task_id")
	}
	a.input = encode(theirs)
	return a, nil
}

// maxSchemas bounds the compiled schemas that are kept. Beyond it all are compiled again.
const maxSchemas = 256

// schemas are compiled schemas of inputs, nil for one that the host cannot check.
type schemas struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]*schema.Params
}

// compile returns the compiled schema of a tool's input.
func (s *schemas) compile(t tool) *schema.Params {
	key := sha256.Sum256(slices.Concat([]byte(t.name), []byte{0}, t.capability.Input))
	s.mu.Lock()
	params, known := s.kept[key]
	s.mu.Unlock()
	if known {
		return params
	}
	params, _ = schema.CompileTool(t.name, t.capability.Input) // the agent judges by itself what the host cannot check
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == maxSchemas {
		clear(s.kept)
	}
	s.kept[key] = params
	return params
}

// checkInput holds an input against the agent's schema.
func (g *Gateway) checkInput(t tool, input json.RawMessage) error {
	if params := g.schemas.compile(t); params != nil {
		return params.Check(input)
	}
	return nil
}

// ask is the message of a call.
func (t tool) ask(q *request, a arguments) gateway.Ask {
	ask := gateway.Ask{
		Kind: gateway.Asks, Swarm: t.agent.Swarm, To: []string{t.agent.Name},
		Conversation: a.TaskID, Subject: a.Subject, Body: a.Message, Raw: q.body, Trace: q.trace,
		Info: map[string]any{"protocol": "mcp", "type": "tools/call"},
	}
	if a.input != nil {
		ask.Info["capability"], ask.Body = t.capability.ID, string(a.input)
	}
	if len(ask.Body) > gateway.MaxText {
		ask.Parts = []gateway.Part{{Name: "message", Type: "text/plain; charset=utf-8", Data: []byte(ask.Body)}}
		ask.Body = fmt.Sprintf("The message has %d bytes; it is the part \"message\".", len(ask.Body))
	}
	ask.Digest = sha256.Sum256(bytes.Join([][]byte{[]byte(t.name), encode(a), a.input}, []byte{0}))
	return ask
}

// encode writes JSON with sorted members.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // only of values that came as JSON
	}
	return raw
}
