// Command script owns the bundled agent whose turn is told what to do by the
// message it handles: the smoke test and test bench of a host. It must not
// know any rule of the host it runs on; every call goes to the host, and the
// host's answer is the result.
//
// A body that is a JSON array of [name, args] pairs is a script: its calls run
// in order, an error does not stop it. Any other message gets one plain
// answer, see [plain].
package main

import (
	"fmt"

	skep "skep/sdk/go"
)

// Script is the agent.
type Script struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "script",
	Version:     "1.0.0",
	Description: "Does what the message says: a JSON array of [name, args] calls, or one plain answer.",
	Agents: []skep.AgentInfo{{
		Name:        "script",
		Description: "Runs the calls a message lists. For tests and smoke tests of a host.",
	}},
}, Script{})

func main() {}

// Turn runs the script in the message's body, or answers plainly.
func (Script) Turn(t *skep.Turn) error {
	if !t.Message.FromSystem() {
		if steps, ok := parse(t.Message.Body); ok {
			run(t, steps)
			return nil
		}
	}
	return plain(t)
}

// plain answers a message that is no script. The order of the cases is part of
// the contract.
func plain(t *skep.Turn) error {
	m := &t.Message
	switch {
	case m.FromSystem():
		if t.Agent.CanComplete {
			return complete(t)
		}
		t.Log("system message", "subject", m.Subject, "body", m.Body)
		return nil
	case m.Type == skep.TypeBroadcast:
		return t.AcknowledgeBroadcast("")
	case t.Agent.CanComplete:
		return complete(t)
	case m.Type == skep.TypeRequest || m.Type == skep.TypeInterrupt:
		return t.SendResponse(m.Sender.Name, "Re: "+m.Subject, "echo: "+m.Body)
	}
	return nil
}

func complete(t *skep.Turn) error {
	m := &t.Message
	return t.TaskComplete(fmt.Sprintf("%s got [%s] %s", t.Agent.Name, m.Subject, m.Body))
}
