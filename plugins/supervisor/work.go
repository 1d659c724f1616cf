package main

import (
	"fmt"
	"strings"

	skep "skep/sdk/go"
)

// work is what the supervisor keeps between turns.
type work struct {
	// Asked counts the requests of the task, to number them.
	Asked int    `json:"asked"`
	Parts []part `json:"parts,omitempty"`
}

// Kinds of part.
const (
	arithmetic = "arithmetic"
	statistics = "text"
)

// part is one piece of a question, and its answer.
type part struct {
	Number int    `json:"number"`
	Kind   string `json:"kind"`
	Agent  string `json:"agent"`
	Body   string `json:"body"`
	Done   bool   `json:"done,omitempty"`
	Answer string `json:"answer,omitempty"`
}

// subject names the part in the request; the answer's subject repeats it.
func (p *part) subject() string { return fmt.Sprintf("Part %d: %s", p.Number, p.Kind) }

// answered takes an answer; false when no request waits for it.
func (w *work) answered(m *skep.Message) bool {
	for i := range w.Parts {
		p := &w.Parts[i]
		if !p.Done && m.Subject == "Re: "+p.subject() && m.Sender.Name == p.Agent {
			p.Done, p.Answer = true, strings.TrimSpace(m.Body)
			return true
		}
	}
	return false
}

// failed gives up the parts whose agent the host's error names, or all when it
// names none. An error about a part that is given up already says nothing new.
func (w *work) failed(reason string) {
	named := false
	for i := range w.Parts {
		p := &w.Parts[i]
		if !strings.Contains(reason, p.Agent) {
			continue
		}
		named = true
		if !p.Done {
			p.Done, p.Answer = true, "error: "+p.Agent+" gave no answer ("+firstLine(reason)+")"
		}
	}
	if !named {
		w.give(firstLine(reason))
	}
}

// give gives up all parts that are open.
func (w *work) give(reason string) {
	for i := range w.Parts {
		if p := &w.Parts[i]; !p.Done {
			p.Done, p.Answer = true, "error: "+reason
		}
	}
}

// waiting lists the agents whose answers are missing.
func (w *work) waiting() []string {
	var agents []string
	for _, p := range w.Parts {
		if !p.Done {
			agents = append(agents, p.Agent)
		}
	}
	return agents
}

// text is the answer to the user: one sentence of all parts.
func (w *work) text() string {
	said := make([]string, len(w.Parts))
	for i, p := range w.Parts {
		said[i] = p.text()
	}
	joined := strings.Join(said, ", and ")
	if !strings.HasSuffix(joined, ".") {
		joined += "."
	}
	return joined
}

func (p *part) text() string {
	if reason, ok := strings.CutPrefix(p.Answer, "error: "); ok {
		if p.Kind == arithmetic {
			return fmt.Sprintf("I could not work out %s: %s", p.Body, reason)
		}
		return fmt.Sprintf("I could not look into the text: %s", reason)
	}
	if p.Kind != arithmetic {
		return p.Answer
	}
	if rounded, ok := strings.CutPrefix(p.Answer, "≈ "); ok {
		return p.Body + " ≈ " + rounded
	}
	return p.Body + " = " + p.Answer
}
