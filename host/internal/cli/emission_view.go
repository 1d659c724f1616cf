package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"skep/host/client"
)

// emissions is what a turn has shown of itself so far.
type emissions struct {
	agent    string
	last     int64
	progress *client.Progress
	text     string // its end, on a live line
}

// keptText is how many bytes of a text are kept for the live line.
const keptText = 4 << 10

// add takes the next piece. What was lost on the way leaves a mark in the text;
// a turn that is run again begins anew.
func (p *emissions) add(m client.Emission, chunk bool) {
	if m.N <= p.last {
		*p = emissions{}
	}
	if p.last > 0 && m.N > p.last+1 {
		p.text += "…"
	}
	p.agent, p.last = m.Agent, m.N
	if m.Progress != nil {
		p.progress = m.Progress
	}
	if chunk {
		p.text += m.Text
		p.text = p.text[max(0, len(p.text)-keptText):]
	}
}

// describe renders the progress before the text, if there is one.
func (p emissions) describe(text string) string {
	var parts []string
	if g := p.progress; g != nil {
		if g.Fraction != nil {
			parts = append(parts, fmt.Sprintf("%.0f %%", *g.Fraction*100))
		}
		if g.Text != "" {
			parts = append(parts, oneLine(g.Text))
		}
	}
	if text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, " · ")
}

// printEmission prints what an agent shows: a note and the sum of a turn in lines of
// their own, what lies between on one line that changes, if there can be one.
func (v *mailview) printEmission(at time.Time, name string, m client.Emission) {
	if name == client.EventOutput {
		delete(v.emissions, m.Turn)
		v.wipe()
		v.printEmitted(at, m.Agent, emissions{progress: m.Progress}.describe(oneLine(m.Text)))
		return
	}
	p := v.emissions[m.Turn]
	p.add(m, name == client.EventChunk)
	v.emissions[m.Turn] = p
	switch {
	case name == client.EventNote:
		v.printEmitted(at, m.Agent, oneLine(m.Text))
	case v.live:
		v.show(at, m.Agent, p.describe(lastLine(p.text)))
	}
}

// printEmitted prints a line that stays.
func (v *mailview) printEmitted(at time.Time, agent, text string) {
	if text == "" {
		return
	}
	v.printTitles()
	who := inLine(agent)
	v.line(v.time(at)+v.style.cyan(pad(clip(who, v.names), v.names)), v.style.dim(" … "+clip(text, v.room())))
}

// show writes the line that changes. The end of a long text is shown.
func (v *mailview) show(at time.Time, agent, text string) {
	v.printTitles()
	left := fmt.Sprintf("%*s  ", timeColumn, since(at.Sub(v.start))) + pad(clip(inLine(agent), v.names), v.names) + " … "
	room := v.width - utf8.RuneCountInString(left) - 1
	if runes := []rune(text); len(runes) > room {
		text = "…" + string(runes[len(runes)-room+1:])
	}
	v.failed(v.w.show(v.style.dim(left+text), utf8.RuneCountInString(left+text)))
}

// wipe takes the line that changes away.
func (v *mailview) wipe() { v.failed(v.w.show("", 0)) }

// lastLine returns the end of a text that is still being written.
func lastLine(text string) string {
	text = strings.TrimRight(printable(text), "\n")
	return strings.ReplaceAll(strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:]), "\t", " ")
}
