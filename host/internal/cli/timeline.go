package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"skep/host/client"
)

// timeline prints a task's log and the turns of its agents in one order. All
// events of one commit have the same time, which is also that at which its turn
// entered the agent's history.
type timeline struct {
	client *client.Client
	task   client.Task
	view   *mailview
	full   bool
	// histories are the histories of the agents that were met so far.
	histories map[string]*historyReader
	// records hold what turns have cost.
	records *turnRecords
	// commit are the events of one commit.
	commit []client.Event
	// pictures are the last progress of each agent that has several lines, as the steps
	// of a plan have.
	pictures map[string]string
}

func newTimeline(ctx context.Context, a *app, c *client.Client, t client.Task, full bool) *timeline {
	v := newMailview(a.env.Stdout, a.dataStyle(), a.env.Width, "you")
	v.all, v.start = true, t.Started()
	return &timeline{client: c, task: t, view: v, full: full, histories: map[string]*historyReader{}, records: openTurnRecords(ctx, c, t.ID), pictures: map[string]string{}}
}

func (l *timeline) close() {
	l.records.stop()
	for _, p := range l.histories {
		p.stop()
	}
}

// run prints what the task's record covers, and nothing later.
func (l *timeline) run(ctx context.Context) error {
	for e, err := range l.client.Log(ctx, l.task.ID, 0, l.task.Cursor) {
		if err != nil {
			return err
		}
		if n := len(l.commit); n > 0 && l.commit[n-1].Timestamp != e.Timestamp {
			if err := l.flush(ctx); err != nil {
				return err
			}
		}
		l.commit = append(l.commit, e)
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	if err := l.printTurns(wireTime(l.task.Updated)); err != nil {
		return err
	}
	for _, t := range l.records.unfinished() {
		l.printTurn(t)
	}
	return l.view.err
}

// pictureRows are the pictures by agent.
func (l *timeline) pictureRows() (rows [][2]string) {
	for _, agent := range slices.Sorted(maps.Keys(l.pictures)) {
		rows = append(rows, [2]string{"progress", inLine(agent) + ": " + printable(l.pictures[agent])})
	}
	return rows
}

// flush prints one commit: the turn it belongs to, and what came of it.
func (l *timeline) flush(ctx context.Context) error {
	if len(l.commit) == 0 {
		return nil
	}
	for _, e := range l.commit {
		for _, name := range []string{e.Recipient(), e.Caller()} {
			if name != "" && l.histories[name] == nil {
				l.histories[name] = openHistory(ctx, l.client, l.task.ID, name)
			}
		}
	}
	if err := l.printTurns(wireTime(l.commit[0].Timestamp)); err != nil {
		return err
	}
	for _, e := range l.commit {
		l.printEvent(e)
	}
	clear(l.commit)
	l.commit = l.commit[:0]
	return l.view.err
}

// printTurns prints all turns up to a time, in their order.
func (l *timeline) printTurns(until time.Time) error {
	var due []turnView
	last := int64(0)
	for _, p := range l.histories {
		for {
			t, ok, err := p.next(until)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			due, last = append(due, t), max(last, t.n)
		}
	}
	if err := l.records.readUntil(until, last); err != nil {
		return err
	}
	for i := range due {
		due[i].record = l.records.takeTurn(due[i].n)
	}
	due = append(due, l.records.endedBy(until)...)
	slices.SortFunc(due, func(a, b turnView) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.n, b.n)) })
	for _, t := range due {
		l.printTurn(t)
	}
	return nil
}

// printTurn prints a turn: its line, and its calls below.
func (l *timeline) printTurn(t turnView) {
	v := l.view
	v.widenNames(t.agent)
	v.printTitles()
	parts := []string{fmt.Sprintf("turn %d", t.n), t.outcome()}
	if cost := l.costOf(t); cost != "" {
		parts = append(parts, cost)
	}
	if m, ok := t.message(); ok {
		parts = append(parts, "takes "+kindName(m.Type)+" from "+sender(m)+" "+inLine(m.Payload.Subject))
	}
	who := v.style.cyan(pad(clip(inLine(t.agent), v.names), v.names))
	text := clip(strings.TrimSpace(strings.Join(parts, " · ")), v.room())
	if t.failed {
		text = v.style.red(text)
	}
	v.line(v.time(t.at)+who+" # ", text)
	if t.record != nil {
		if ops := opsText(*t.record); ops != "" {
			l.printBelow(ops)
		}
		for _, text := range modelFailureTexts(*t.record) {
			l.printBelow(text)
		}
		for _, s := range spanTexts(t.record.Spans) {
			l.printBelow(s)
		}
	}
	for _, step := range t.steps {
		l.printBelow(step)
	}
	if t.dropped > 0 {
		l.printBelow(plural(int64(t.dropped), "more step"))
	}
}

// printBelow prints a text under the line it belongs to: one line of it, or all.
func (l *timeline) printBelow(text string) {
	const indent = timeColumn + 4
	if l.full {
		l.view.line(strings.Repeat(" ", indent), indentBelow(printable(text), indent+2))
		return
	}
	l.view.line(strings.Repeat(" ", indent), l.view.style.dim(clip(oneLine(text), l.view.width-indent)))
}

// costOf is what a turn has cost. When its record is gone, the first message of
// its commit has it.
func (l *timeline) costOf(t turnView) string {
	if t.record != nil {
		return costText(*t.record)
	}
	for _, e := range l.commit {
		var extra struct {
			Cost *struct {
				Fuel uint64  `json:"fuel"`
				CPU  float64 `json:"cpu_ms"`
			} `json:"cost"`
		}
		if !wireTime(e.Timestamp).Equal(t.at) || json.Unmarshal(e.Extra, &extra) != nil || extra.Cost == nil {
			continue
		}
		return quantity(extra.Cost.Fuel) + " fuel · " + span(time.Duration(extra.Cost.CPU*float64(time.Millisecond))) + " cpu"
	}
	return ""
}

// printEvent prints an event, unless its turn has printed it already.
func (l *timeline) printEvent(e client.Event) {
	v := l.view
	if e.Name == "tool_call" {
		return
	}
	if m, ok := e.Message(); ok {
		fresh := m.ID != v.last
		v.printEvent(e)
		if l.full && fresh {
			l.printBelow(m.Payload.Body)
		}
		return
	}
	if e.Ends() {
		l.printEnding(e)
		return
	}
	v.printEvent(e)
	if m, ok := e.Emission(); ok {
		if m.Progress != nil && strings.Contains(m.Progress.Text, "\n") {
			l.pictures[m.Agent] = m.Progress.Text
		}
		if l.full && m.Text != "" {
			l.printBelow(m.Text)
		}
	}
	if failureEvents[e.Name] {
		if l.full {
			l.printBelow(e.Description)
		}
		l.printLimit(e)
	}
}

// printEnding prints that a post was answered: a task may go on after that.
func (l *timeline) printEnding(e client.Event) {
	v := l.view
	v.printEvent(e)
	v.printTitles()
	name := "answer"
	if e.Name == client.EventError {
		name = "timeout"
	}
	v.line(v.time(wireTime(e.Timestamp))+v.style.bold(pad(name, v.names)), " = "+clip(oneLine(e.Response), v.room()))
}

// printLimit prints the limit that a failure ran into.
func (l *timeline) printLimit(e client.Event) {
	var extra struct {
		Cause string `json:"cause"`
		Limit string `json:"limit"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil || extra.Cause == "" {
		return
	}
	text := "cause " + extra.Cause
	if extra.Limit != "" {
		text += ", limit [agents." + e.Caller() + "] " + extra.Limit
	}
	l.printBelow(text)
}
