package cli

import (
	"context"
	"log/slog"
	"sync"
)

// maxTurnLines bounds the log lines of one turn on a terminal.
const maxTurnLines = 10

// briefLog passes on the first lines of each turn, and then how many there were
// more. Lines that belong to no turn all pass. Attributes of a logger made of it
// are not looked at.
type briefLog struct {
	slog.Handler
	more func(turn turnID, n int)

	mu    sync.Mutex
	turn  turnID
	lines int // of turn
}

// turnID identifies a turn.
type turnID struct {
	agent, task string
	n           int64
}

func turnOf(r slog.Record) (t turnID, ok bool) {
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "agent":
			t.agent = a.Value.String()
		case "task_id":
			t.task = a.Value.String()
		case "turn":
			if a.Value.Kind() == slog.KindInt64 {
				t.n, ok = a.Value.Int64(), true
			}
		}
		return true
	})
	return t, ok
}

// Handle passes a record on while its turn has lines left.
func (h *briefLog) Handle(ctx context.Context, r slog.Record) error {
	turn, ok := turnOf(r)
	if !ok {
		return h.Handler.Handle(ctx, r)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if turn != h.turn {
		h.reportSkipped()
		h.turn, h.lines = turn, 0
	}
	if h.lines++; h.lines > maxTurnLines {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// flush reports the lines left out so far.
func (h *briefLog) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reportSkipped()
}

// reportSkipped reports the lines left out; the caller holds mu.
func (h *briefLog) reportSkipped() {
	if h.lines > maxTurnLines {
		h.more(h.turn, h.lines-maxTurnLines)
		h.lines = maxTurnLines
	}
}

// noteSkippedLines prints how many lines of a turn's log are not shown.
func (a *app) noteSkippedLines(turn turnID, n int) {
	text := "… " + plural(int64(n), "more line")
	a.notef("%s", a.noteStyle().dim(text+" of "+inLine(turn.agent)))
}
