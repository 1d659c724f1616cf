package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"skep/plugins/internal/question"
)

// maxLabels is how many steps a picture has. Of a longer plan it has the states, with how
// many steps are in each, and the steps under way.
const maxLabels = 40

// maxWho is how much of the name of an agent or action a picture has, in bytes.
const maxWho = 64

// label is a step in a picture.
type label struct {
	ID    string `json:"id"`
	Who   string `json:"who"`
	After string `json:"after,omitempty"`
}

func labelsOf(p plan) (list []label) {
	if len(p.Steps) > maxLabels {
		return nil
	}
	for _, r := range p.Steps {
		l := label{ID: r.Step.ID, Who: question.Clip(cmp.Or(r.Step.Agent, r.Step.Tool), maxWho)}
		var after []string
		for _, i := range r.After {
			after = append(after, p.Steps[i].Step.ID)
		}
		l.After = question.Clip(strings.Join(after, ", "), 80)
		list = append(list, l)
	}
	return list
}

// inLine replaces what could break a line or control a terminal: strangers choose names and errors.
func inLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// picture is the workflow as a table, at most 4 KiB.
func (w *work) picture() string {
	name := w.ID
	if w.Name != "" {
		name = w.Name
	}
	state := w.Phase
	if state == phaseEnd {
		state = w.Last
	}
	s := w.summary()
	var b strings.Builder
	fmt.Fprintf(&b, "workflow %s: %s, %d of %d steps", question.Clip(inLine(name), 100), state, s.Done+s.Failed+s.Skipped+s.NotRun, s.Total)
	if n := len(w.Undone); n > 0 {
		fmt.Fprintf(&b, ", %d undone", n)
	}
	if n := len(w.Stuck); n > 0 {
		fmt.Fprintf(&b, ", %d not undone", n)
	}
	if w.Code != "" {
		fmt.Fprintf(&b, "\n%s: %s", question.Clip(inLine(w.Code), 100), question.Clip(inLine(strings.Join(strings.Fields(w.Why), " ")), 300))
	}
	width := 0
	for _, l := range w.Labels {
		width = max(width, len(l.ID))
	}
	for i, l := range w.Labels {
		line := fmt.Sprintf("\n%-*s  %-8s  %s", width, l.ID, w.stateOf(i, l.ID), inLine(l.Who))
		if l.After != "" {
			line += "  after " + l.After
		}
		line += w.timesOf(i)
		if b.Len()+len(line) > 4000 {
			b.WriteString("\n…")
			break
		}
		b.WriteString(line)
	}
	if len(w.Labels) == 0 {
		w.drawStates(&b)
	}
	return b.String()
}

// drawStates writes a line for each state of the steps of a long plan.
func (w *work) drawStates(b *strings.Builder) {
	var under []string
	for _, r := range w.Runs {
		under = append(under, r.ID)
	}
	for _, state := range []byte{done, failed, skipped, running, ready, waiting, cut} {
		n := strings.Count(w.Steps, string(rune(state)))
		if n == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%-8s  %d", stateNames[state], n)
		if state == running && len(under) > 0 && w.Phase != phaseUndo {
			b.WriteString("  " + question.Clip(strings.Join(under, ", "), 1000))
		}
	}
	if w.Phase == phaseUndo && len(under) > 0 {
		b.WriteString("\nundoing   " + question.Clip(strings.Join(under, ", "), 1000))
	}
}

// stateOf is the state of a step in a picture, with its tries and its compensation.
func (w *work) stateOf(i int, id string) string {
	if n := w.runOf(i); n != nil {
		return n.state()
	}
	switch {
	case slices.Contains(w.Undone, id):
		return "undone"
	case slices.Contains(w.Stuck, id):
		return "stuck"
	}
	return stateNames[w.Steps[i]]
}

// runOf is what is under way of a step, nil for nothing.
func (w *work) runOf(i int) *run {
	if n := slices.IndexFunc(w.Runs, func(r run) bool { return r.Step == i }); n >= 0 {
		return &w.Runs[n]
	}
	return nil
}

// state is the state of a step that has begun.
func (r *run) state() string {
	switch {
	case r.Undo:
		return "undoing"
	case r.Request == "":
		return "pause"
	case r.Message == "":
		return phaseDrain
	case r.Try > 1:
		return fmt.Sprint("try ", r.Try)
	}
	return stateNames[running]
}

// timesOf is since when a step is under way, where its record has that, and until when it may be.
func (w *work) timesOf(i int) string {
	n := w.runOf(i)
	if n == nil {
		return ""
	}
	text := ""
	if n.Since > 0 {
		text = " since " + timeText(n.Since)
	}
	if n.Due > 0 {
		text += " until " + timeText(n.Due)
	}
	if text != "" {
		text = " " + text
	}
	return text
}

// show emits the picture to the readers of the task, and keeps it with the turn.
func (w *work) show() {
	s := w.summary()
	fraction := float64(s.Done+s.Failed+s.Skipped+s.NotRun) / float64(max(1, s.Total))
	if _, err := w.t.EmitProgress(w.picture(), fraction); err != nil {
		w.t.Log("the picture was not shown", "error", err)
	}
}
