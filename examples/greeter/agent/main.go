// Command agent greets its senders, in the language the swarm's file
// asks for, and counts how often it did so in this task.
package main

import (
	"fmt"

	skep "skep/sdk/go"
)

// Greeter is the agent. It keeps nothing between turns but its state.
type Greeter struct{}

// Params come from the agent's params in swarm.toml.
type Params struct {
	Greeting string `json:"greeting"`
}

// State is what the agent remembers of one task.
type State struct {
	Greeted int `json:"greeted"`
}

var _ = skep.Run(skep.Descriptor{
	Name: "greeter", Version: "1.0.0",
	Description: "Greets by name and counts its greetings.",
	Agents: []skep.AgentInfo{{
		Name: "greeter", Description: "Send it a name.",
		Params: []byte(`{"type":"object","properties":{"greeting":{"type":"string"}},"additionalProperties":false}`),
	}},
}, Greeter{})

func main() {}

// Turn greets and completes the task.
func (Greeter) Turn(t *skep.Turn) error {
	params := Params{Greeting: "Hello"}
	if err := t.Params(&params); err != nil {
		return err
	}
	var state State
	if err := t.State(&state); err != nil {
		return err
	}
	state.Greeted++
	if err := t.SetState(state); err != nil {
		return err
	}
	return t.TaskComplete(fmt.Sprintf("%s, %s! (greeting %d of this task)", params.Greeting, t.Message.Body, state.Greeted))
}
