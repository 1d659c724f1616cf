// Command relay hands a question on to the next agent, and the answer back to who has
// asked. Each agent on the way adds a line to the answer: its name and the trace of its turn.
package main

import (
	"fmt"
	"strings"

	skep "skep/sdk/go"
)

// Relay is the agent. What it waits for lies in its state.
type Relay struct{}

// Params name where a question goes on. Without any of them the way ends here.
type Params struct {
	// Next is the address of an agent.
	Next string `json:"next"`
	// Tool is an action that asks an agent behind a tool of MCP.
	Tool string `json:"tool"`
}

// State has the questions that were handed on, by the id of the request.
type State struct {
	Open map[string]Question `json:"open"`
}

// Question is a question that was handed on.
type Question struct {
	Asker, Subject, Trace string
}

var _ = skep.Run(skep.Descriptor{
	Name: "relay", Version: "1.0.0", Description: "Hands a question on, and the answer back.",
	Agents: []skep.AgentInfo{{
		Name: "relay", Description: "Hands a question on, and the answer back.",
		Params: []byte(`{"type":"object","properties":{"next":{"type":"string"},"tool":{"type":"string"}},"additionalProperties":false}`),
	}},
}, Relay{})

func main() {}

// Turn handles a question, or the answer to one.
func (Relay) Turn(t *skep.Turn) error {
	var p Params
	var s State
	if err := t.Params(&p); err != nil {
		return err
	}
	if err := t.State(&s); err != nil {
		return err
	}
	m := &t.Message
	if q, ok := s.Open[m.RefID]; ok && m.Type != skep.TypeRequest {
		delete(s.Open, m.RefID)
		if err := t.SetState(s); err != nil {
			return err
		}
		return answer(t, q, m.Body)
	}
	if m.Type != skep.TypeRequest {
		return nil
	}
	q := Question{Asker: m.Sender.Name, Subject: m.Subject, Trace: traceID(t)}
	switch {
	case p.Next != "":
		return handOn(t, s, q, p.Next)
	case p.Tool != "":
		text, err := call(t, p.Tool)
		if err != nil {
			return err
		}
		return answer(t, q, text)
	}
	return answer(t, q, "arrived: "+m.Body)
}

// handOn asks the next agent.
func handOn(t *skep.Turn, s State, q Question, next string) error {
	id, err := t.Ask(next, t.Message.Subject, t.Message.Body)
	if err != nil {
		return err
	}
	if s.Open == nil {
		s.Open = map[string]Question{}
	}
	s.Open[id] = q
	if err := t.SetState(s); err != nil {
		return err
	}
	return t.AwaitMessage("for the answer of " + next)
}

// call asks by a tool, until the answer is there.
func call(t *skep.Turn, tool string) (string, error) {
	args := map[string]string{"message": t.Message.Body}
	for {
		var got struct {
			TaskID string `json:"task_id"`
			Status string `json:"status"`
			Text   string `json:"text"`
		}
		if err := t.Action(tool, args, &got); err != nil {
			return "", err
		}
		if got.Status != "working" {
			return got.Text, nil
		}
		args = map[string]string{"task_id": got.TaskID}
	}
}

// answer answers who has asked, with a line of this agent before what it has got.
func answer(t *skep.Turn, q Question, body string) error {
	line := fmt.Sprintf("%s@%s %s", t.Agent.Name, t.Agent.Swarm, q.Trace)
	if back := traceID(t); back != q.Trace {
		line += ", and back " + back
	}
	text := line + "\n" + body
	if t.Agent.CanComplete {
		return t.TaskComplete(text)
	}
	return t.SendResponse(q.Asker, "Re: "+q.Subject, text)
}

// traceID is the id in the traceparent of the turn
// (https://www.w3.org/TR/trace-context/#trace-id).
func traceID(t *skep.Turn) string {
	parts := strings.Split(t.Trace, "-")
	if len(parts) < 2 {
		return "no-trace"
	}
	return parts[1]
}
