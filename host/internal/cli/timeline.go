package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	// pasts are the histories of the agents that were met so far.
	pasts map[string]*past
	// ledger has what turns have cost.
	ledger *ledger
	// commit are the events of one commit.
	commit []client.Event
}

func newTimeline(ctx context.Context, a *app, c *client.Client, t client.Task, full bool) *timeline {
	v := newMailview(a.env.Stdout, a.dataStyle(), a.env.Width, "you")
	v.all, v.start = true, t.Started()
	return &timeline{client: c, task: t, view: v, full: full, pasts: map[string]*past{}, ledger: openLedger(ctx, c, t.ID)}
}

func (l *timeline) close() {
	l.ledger.stop()
	for _, p := range l.pasts {
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
	if err := l.turns(wireTime(l.task.Updated)); err != nil {
		return err
	}
	for _, t := range l.ledger.unfinished() {
		l.turn(t)
	}
	return l.view.err
}

// flush prints one commit: the turn it belongs to, and what came of it.
func (l *timeline) flush(ctx context.Context) error {
	if len(l.commit) == 0 {
		return nil
	}
	for _, e := range l.commit {
		for _, name := range []string{e.Recipient(), e.Caller()} {
			if name != "" && l.pasts[name] == nil {
				l.pasts[name] = openPast(ctx, l.client, l.task.ID, name)
			}
		}
	}
	if err := l.turns(wireTime(l.commit[0].Timestamp)); err != nil {
		return err
	}
	for _, e := range l.commit {
		l.event(e)
	}
	clear(l.commit)
	l.commit = l.commit[:0]
	return l.view.err
}

// turns prints all turns up to a time, in their order.
func (l *timeline) turns(until time.Time) error {
	var due []turnView
	last := int64(0)
	for _, p := range l.pasts {
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
	if err := l.ledger.read(until, last); err != nil {
		return err
	}
	for i := range due {
		due[i].told = l.ledger.take(due[i].n)
	}
	due = append(due, l.ledger.rest(until)...)
	slices.SortFunc(due, func(a, b turnView) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.n, b.n)) })
	for _, t := range due {
		l.turn(t)
	}
	return nil
}

// turn prints a turn: its line, and its calls below.
func (l *timeline) turn(t turnView) {
	v := l.view
	v.fit(t.agent)
	v.head()
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
	if t.told != nil {
		if ops := opsText(*t.told); ops != "" {
			l.below(ops)
		}
		for _, s := range spanTexts(t.told.Spans) {
			l.below(s)
		}
	}
	for _, step := range t.steps {
		l.below(step)
	}
	if t.more > 0 {
		l.below(plural(int64(t.more), "more step"))
	}
}

// below prints a text under the line it belongs to: one line of it, or all.
func (l *timeline) below(text string) {
	const indent = timeColumn + 4
	if l.full {
		l.view.line(strings.Repeat(" ", indent), below(printable(text), indent+2))
		return
	}
	l.view.line(strings.Repeat(" ", indent), l.view.style.dim(clip(oneLine(text), l.view.width-indent)))
}

// costOf is what a turn has cost. When its record is gone, the first message of
// its commit tells.
func (l *timeline) costOf(t turnView) string {
	if t.told != nil {
		return costText(*t.told)
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

// event prints an event, unless its turn has told it already.
func (l *timeline) event(e client.Event) {
	v := l.view
	if e.Name == "tool_call" {
		return
	}
	if m, ok := e.Message(); ok {
		fresh := m.ID != v.last
		v.event(e)
		if l.full && fresh {
			l.below(m.Payload.Body)
		}
		return
	}
	if e.Ends() {
		l.ending(e)
		return
	}
	v.event(e)
	if m, ok := e.Emission(); ok && l.full && m.Text != "" {
		l.below(m.Text)
	}
	if troubles[e.Name] {
		if l.full {
			l.below(e.Description)
		}
		l.trouble(e)
	}
}

// ending prints that a post was answered: a task may go on after that.
func (l *timeline) ending(e client.Event) {
	v := l.view
	v.event(e)
	v.head()
	name := "answer"
	if e.Name == client.EventError {
		name = "timeout"
	}
	v.line(v.time(wireTime(e.Timestamp))+v.style.bold(pad(name, v.names)), " = "+clip(oneLine(e.Response), v.room()))
}

// trouble tells which limit a failure ran into.
func (l *timeline) trouble(e client.Event) {
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
	l.below(text)
}
