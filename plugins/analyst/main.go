// Command analyst owns text statistics for a swarm: it answers a request that
// names a text, and what to count in it, with one sentence. It must not know who
// asks, or why.
//
// The text is what stands in quotes, else what follows a colon, else the whole
// body. Without a measure it counts what is usually asked for.
package main

import skep "skep/sdk/go"

// Analyst is the agent.
type Analyst struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "analyst",
	Version:     "1.0.0",
	Description: "Counts words, letters, vowels and more in a text.",
	Agents: []skep.AgentInfo{{
		Name:        "analyst",
		Description: `Send a request such as: how many words and vowels are in "the bees are busy"?`,
		Capabilities: []skep.Capability{{
			ID: "text-statistics", Version: "1.0.0", Description: "Counts in a text.",
		}},
	}},
}, Analyst{})

func main() {}

// Turn answers questions about a text.
func (Analyst) Turn(t *skep.Turn) error {
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

func answer(body string) string {
	question, text := split(body)
	if text == "" {
		return `error: there is no text; put it in quotes, as in: how many words are in "the bees are busy"?`
	}
	return report(text, wanted(question))
}
