// Command tool owns the bundled agent that runs exactly the action that a request
// names, and answers with its result. No model decides. It must not know any action:
// the host checks what may be called, the arguments, the budget, and records the call.
package main

import (
	"encoding/json"
	"errors"

	"skep/plugins/internal/question"
	skep "skep/sdk/go"
)

// Tool is the agent.
type Tool struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "tool",
	Version:     "1.0.0",
	Description: "Runs the action that a request names and answers with its result, without a model.",
	Agents: []skep.AgentInfo{{
		Name:        "tool",
		Description: `Send {"tool": NAME, "parameters": {…}} to run one of its actions.`,
	}},
}, Tool{})

func main() {}

// Turn runs the action of a request and answers, whatever became of it.
func (Tool) Turn(t *skep.Turn) error {
	m := &t.Message
	withdrawn, withdraws := question.Withdrawn(m.Body)
	switch {
	case m.FromSystem():
		t.Log("system message", "subject", m.Subject, "body", m.Body)
		return nil
	case m.Type == skep.TypeBroadcast:
		return t.IgnoreBroadcast("")
	case m.Type == skep.TypeInterrupt && withdraws:
		return withdraw(t, withdrawn)
	case m.Type == skep.TypeRequest || m.Type == skep.TypeInterrupt:
		return serve(t)
	}
	return nil
}

// serve answers a request. Being called off ends the turn, and is no answer.
func serve(t *skep.Turn) error {
	gone, err := takeWithdrawn(t)
	if err != nil {
		return err
	}
	call, err := readCall(t)
	if gone {
		err = errWithdrawn
	}
	var output json.RawMessage
	var seconds float64
	if err == nil {
		output, seconds, err = run(t, call)
	}
	if errors.Is(err, skep.Cancelled) {
		return err
	}
	if call.Silent && !t.Message.FromUser() {
		t.Log("ran without an answer", "tool", call.Tool, "error", err)
		return nil
	}
	body, err := newAnswer(output, seconds, err).encode(call.Tool)
	if err != nil {
		return err
	}
	if t.Message.FromUser() {
		return t.TaskComplete(string(body))
	}
	return t.SendResponse(t.Message.Sender.Name, "Re: "+question.Clip(t.Message.Subject, maxSubject), string(body))
}

// run calls the action, and measures how long it took.
func run(t *skep.Turn, c call) (output json.RawMessage, seconds float64, err error) {
	if err := c.permitted(t.Tools); err != nil {
		return nil, 0, err
	}
	begun, err := t.WallTime()
	if err != nil {
		return nil, 0, err
	}
	if err := t.Action(c.Tool, c.Parameters, &output); err != nil {
		return nil, 0, err
	}
	ended, err := t.WallTime()
	if errors.Is(err, skep.Cancelled) {
		return nil, 0, err
	}
	if err != nil { // the action has run, whatever the clock says
		ended = begun
	}
	return output, ended.Sub(begun).Seconds(), nil
}
