// Command llm owns the bundled agent that thinks with a model: it shows the model
// what the agent knows, makes the calls that the model asks for, and asks again
// until the turn is done. It must not know which provider answers, and it takes
// nothing that it reads, mail or results or answers, for more than text.
//
// What the agent is told, which model answers and how long it may go on stands in
// its params, see [params].
package main

import (
	skep "skep/sdk/go"
)

// Thinker is the agent.
type Thinker struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "llm",
	Version:     "1.0.0",
	Description: "An agent that thinks with a model: a system prompt, a model and a list of tools make it.",
	Agents: []skep.AgentInfo{{
		Name:        "llm",
		Description: "Shows its mail to a model, makes the calls the model asks for, and answers.",
		Params:      []byte(paramsSchema),
	}},
	Requests: []skep.Request{
		{Allow: "llm", Reason: "to ask the model that its params name"},
		{Allow: "kv", Reason: "for the tools kv_get, kv_put, kv_delete and kv_list, where params.ops names them", Optional: true},
		{Allow: "http", Reason: "for the tool http_fetch, where params.ops names it", Optional: true},
	},
}, Thinker{})

func main() {}

// Turn handles one message.
func (Thinker) Turn(t *skep.Turn) error {
	p, err := readParams(t)
	if err != nil {
		return err
	}
	tools, err := newKit(t, p)
	if err != nil {
		return err
	}
	m := &mind{turn: t, started: t.Now(), params: p, kit: tools, show: show{turn: t, reasoning: p.EmitReasoning}}
	if err := m.remember(); err != nil {
		return m.over(err)
	}
	if handled(t, m.past) {
		t.Log("already dealt with", "subject", t.Message.Subject)
		return nil
	}
	return m.over(m.think())
}
