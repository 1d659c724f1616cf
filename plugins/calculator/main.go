// Command calculator owns arithmetic for a swarm: it answers a request whose
// body is an expression with its value. It must not know who asks, or why.
//
// The answer's body is the value alone, or "error: " and what is wrong.
package main

import skep "skep/sdk/go"

// Calculator is the agent.
type Calculator struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "calculator",
	Version:     "1.0.0",
	Description: "Works out arithmetic exactly: + - * / % ^, parentheses, decimals.",
	Agents: []skep.AgentInfo{{
		Name:        "calculator",
		Description: "Send a request with an expression as its body, for instance (17+4)*3.",
		Capabilities: []skep.Capability{{
			ID: "arithmetic", Version: "1.0.0", Description: "The value of an arithmetic expression.",
		}},
	}},
}, Calculator{})

func main() {}

// Turn answers requests for a value.
func (Calculator) Turn(t *skep.Turn) error {
	m := &t.Message
	switch {
	case m.FromSystem():
		t.Log("system message", "subject", m.Subject, "body", m.Body)
		return nil
	case m.Type == skep.TypeBroadcast:
		return t.AcknowledgeBroadcast("")
	case m.FromUser() && t.Agent.CanComplete:
		return t.TaskComplete(answer(m.Body))
	case m.Type == skep.TypeRequest || m.Type == skep.TypeInterrupt:
		return t.SendResponse(m.Sender.Name, "Re: "+m.Subject, answer(m.Body))
	}
	return nil
}

func answer(expression string) string {
	value, err := evaluate(expression)
	if err != nil {
		return "error: " + err.Error()
	}
	return format(value)
}
