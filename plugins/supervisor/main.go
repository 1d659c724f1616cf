// Command supervisor owns the conversation of the default swarm: it splits a
// question into parts, asks the agents that know, and gives the user one answer.
// It must not know how arithmetic or text statistics are done.
//
// What it waits for lies in its state, since nothing else lasts from one turn to
// the next. The agents it asks are named by its params:
//
//	params = { calculator = "calculator", analyst = "analyst" }
package main

import (
	"cmp"
	"strings"

	skep "skep/sdk/go"
)

// Supervisor is the agent.
type Supervisor struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "supervisor",
	Version:     "1.0.0",
	Description: "Splits a question between a calculator and a text analyst and answers it.",
	Agents: []skep.AgentInfo{{
		Name:        "supervisor",
		Description: helpText,
		Params: []byte(`{"type":"object","additionalProperties":false,"properties":{` +
			`"calculator":{"type":"string"},"analyst":{"type":"string"}}}`),
		Roles: []string{"supervisor"},
	}},
}, Supervisor{})

func main() {}

// helpText is what a user learns who asked for something else.
const helpText = `I can work out arithmetic and count things in a text. ` +
	`Try: What is (17+4)*3, and how many words and vowels are in "the bees are busy in the skep"?`

// names are the agents it asks.
type names struct {
	Calculator string `json:"calculator"`
	Analyst    string `json:"analyst"`
}

// Turn takes a question or an answer a step further.
func (Supervisor) Turn(t *skep.Turn) error {
	var open work
	if err := t.State(&open); err != nil {
		return err
	}
	m := &t.Message
	switch {
	case m.FromSystem():
		return system(t, &open)
	case m.Type == skep.TypeBroadcast:
		return t.AcknowledgeBroadcast("")
	case m.Type == skep.TypeResponse:
		if !open.answered(m) {
			t.Log("an answer nobody waits for", "from", m.Sender.Name, "subject", m.Subject)
		}
		return goOn(t, &open)
	}
	return ask(t, &open)
}

// ask splits a question and sends its parts out.
func ask(t *skep.Turn, open *work) error {
	who := names{Calculator: "calculator", Analyst: "analyst"}
	if err := t.Params(&who); err != nil {
		return err
	}
	parts := splitQuestion(t.Message.Body)
	if len(parts) == 0 && len(open.Parts) == 0 {
		return t.TaskComplete(helpText)
	}
	for _, p := range parts {
		p.Agent = who.Analyst
		if p.Kind == arithmetic {
			p.Agent = who.Calculator
		}
		open.Asked++
		p.Number = open.Asked
		if err := t.SendRequest(p.Agent, p.subject(), p.Body); err != nil {
			p.Done, p.Answer = true, "error: "+p.Agent+" cannot be asked ("+err.Error()+")"
		}
		open.Parts = append(open.Parts, p)
	}
	return goOn(t, open)
}

// goOn waits for what is still open, or answers.
func goOn(t *skep.Turn, open *work) error {
	if waiting := open.waiting(); len(waiting) > 0 {
		if err := t.SetState(open); err != nil {
			return err
		}
		return t.AwaitMessage("for " + strings.Join(waiting, " and "))
	}
	return finish(t, open)
}

func finish(t *skep.Turn, open *work) error {
	if len(open.Parts) == 0 {
		return nil // nothing was asked; the host knows what becomes of the task
	}
	text := open.text()
	open.Parts = nil
	if err := t.SetState(open); err != nil {
		return err
	}
	return t.TaskComplete(text)
}

// system takes a message of the host: most of them mean that an answer will not
// come.
func system(t *skep.Turn, open *work) error {
	m := &t.Message
	t.Log("system message", "subject", m.Subject, "body", m.Body)
	switch m.Subject {
	case "::maximum_steps_reached::":
		open.give("the task ran out of messages")
		if len(open.Parts) == 0 {
			return t.TaskComplete("I ran out of steps before I had an answer.")
		}
		return finish(t, open)
	case "::agent_error::", "::router_error::", "::invalid_recipient::":
		open.failed(m.Body)
		return goOn(t, open)
	}
	if len(open.waiting()) > 0 {
		return t.AwaitMessage("for an answer")
	}
	return nil
}

// firstLine shortens an error of the host for the user.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return cmp.Or(line, "no reason given")
}
