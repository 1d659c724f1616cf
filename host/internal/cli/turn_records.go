package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/host/client"
)

// turnRecords reads what the turns of a task have cost, in the order of their numbers.
type turnRecords struct {
	pull func() (client.Turn, error, bool)
	stop func()
	// open are the turns that were read and have not been shown.
	open map[int64]client.Turn
	// last is the turn that was read last; over: there are no more.
	last client.Turn
	over bool
}

func openTurnRecords(ctx context.Context, c *client.Client, task string) *turnRecords {
	l := &turnRecords{open: map[int64]client.Turn{}}
	l.pull, l.stop = iter.Pull2(c.Turns(ctx, task, 0))
	return l
}

// readUntil reads on as far as turns began by a time, and up to the n-th at least.
func (l *turnRecords) readUntil(until time.Time, n int64) error {
	for !l.over && (l.last.N < n || !wireTime(l.last.Start).After(until)) {
		t, err, ok := l.pull()
		if err != nil {
			return err
		}
		if l.over = !ok; ok {
			l.last, l.open[t.N] = t, t
		}
	}
	return nil
}

// takeTurn returns a turn, nil for one without a record.
func (l *turnRecords) takeTurn(n int64) *client.Turn {
	t, ok := l.open[n]
	if !ok {
		return nil
	}
	delete(l.open, n)
	return &t
}

// endedBy takes the turns that have ended by a time. They are not in the history of
// their agents, or they would have been taken before.
func (l *turnRecords) endedBy(until time.Time) (list []turnView) {
	for n, t := range l.open {
		if at := wireTime(t.End); t.End != "" && !at.After(until) {
			list = append(list, turnView{agent: t.Agent, n: n, at: at, failed: t.Exit != exitWell, record: l.takeTurn(n)})
		}
	}
	return list
}

// exitWell is how a turn ends that does not fail.
const exitWell = "ok"

// unfinished takes the turns that have not ended.
func (l *turnRecords) unfinished() (list []turnView) {
	for n, t := range l.open {
		if t.End == "" {
			list = append(list, turnView{agent: t.Agent, n: n, at: wireTime(t.Start), record: l.takeTurn(n)})
		}
	}
	slices.SortFunc(list, func(a, b turnView) int { return cmp.Compare(a.n, b.n) })
	return list
}

// costText is what a turn has cost, empty while it is not over.
func costText(t client.Turn) string {
	u := t.Usage
	if u == nil {
		return ""
	}
	return fmt.Sprintf("%s fuel · %s cpu", quantity(u.Fuel), span(u.CPU))
}

// modelFailureTexts say which models have failed in a turn, and why.
func modelFailureTexts(t client.Turn) (lines []string) {
	for _, f := range t.ModelFailures {
		lines = append(lines, fmt.Sprintf("model %s failed ×%d: %s", inLine(f.Model), f.Count, inLine(f.Cause)))
	}
	return lines
}

// opMail is the op of the calls that an agent's history lists one by one.
const opMail = "mail"

// opsText lists the ops that a turn called; empty when its history lists
// them all.
func opsText(t client.Turn) string {
	var parts []string
	for _, op := range slices.Sorted(maps.Keys(t.Ops)) {
		parts = append(parts, fmt.Sprintf("%s ×%d", op, t.Ops[op]))
	}
	if len(parts) == 0 || len(parts) == 1 && t.Ops[opMail] > 0 {
		return ""
	}
	text := "ops: " + strings.Join(parts, ", ")
	if u := t.Usage; u != nil && u.Fetches > 0 {
		text += fmt.Sprintf(" · %s", httpText(u.Fetches, u.FetchBytes))
	}
	if u := t.Usage; u != nil && u.Tokens > 0 {
		text += " · " + modelText(u.Tokens, u.MicroUSD)
	}
	return text
}

// spanTexts are the lines of a turn's spans, with a dot for each that they lie in
// and one more.
func spanTexts(spans []client.TurnSpan) (lines []string) {
	depths := make([]int, len(spans))
	for i, s := range spans {
		if s.Parent > 0 && s.Parent <= i {
			depths[i] = depths[s.Parent-1] + 1
		}
		name := s.Name
		if s.Action != "" {
			name = s.Action + ": " + name
		}
		text := fmt.Sprintf("%s%s · %s at +%s", strings.Repeat("· ", depths[i]+1), name, span(s.Duration), span(s.Offset))
		if s.Cut {
			text += ", not ended"
		}
		for _, key := range slices.Sorted(maps.Keys(s.Attributes)) {
			text += fmt.Sprintf(" · %s=%s", key, s.Attributes[key])
		}
		if s.Error != "" {
			text += " · failed: " + s.Error
		}
		lines = append(lines, text)
	}
	return lines
}

// modelText renders a model's tokens and, where they have a price, their cost.
func modelText(tokens, microUSD int64) string {
	text := plural(tokens, "token")
	if microUSD > 0 {
		text += " · $" + strconv.FormatFloat(float64(microUSD)/1e6, 'f', -1, 64)
	}
	return text
}

// httpText renders the number of HTTP requests and the bytes they moved.
func httpText(fetches, bytes int64) string {
	return fmt.Sprintf("%s, %s bytes", plural(fetches, "HTTP request"), quantity(uint64(max(0, bytes))))
}
