package cli

import (
	"context"
	"log/slog"
	"sync"
)

// maxTurnLines is how much of what one turn has logged a person is shown.
const maxTurnLines = 10

// briefLog passes on the first lines of each turn, and then how many there were
// more. Lines that belong to no turn all pass. Attributes of a logger made of it
// are not looked at.
type briefLog struct {
	slog.Handler
	more func(turn turnName, n int)

	mu    sync.Mutex
	turn  turnName
	lines int // of turn
}

// turnName tells one turn from all others.
type turnName struct {
	agent, task string
	n           int64
}

func turnOf(r slog.Record) (t turnName, ok bool) {
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

// Handle passes a record on, unless its turn has had its lines.
func (h *briefLog) Handle(ctx context.Context, r slog.Record) error {
	turn, ok := turnOf(r)
	if !ok {
		return h.Handler.Handle(ctx, r)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if turn != h.turn {
		h.tell()
		h.turn, h.lines = turn, 0
	}
	if h.lines++; h.lines > maxTurnLines {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// flush tells what was left out so far.
func (h *briefLog) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell()
}

// tell is called with mu held.
func (h *briefLog) tell() {
	if h.lines > maxTurnLines {
		h.more(h.turn, h.lines-maxTurnLines)
		h.lines = maxTurnLines
	}
}

// moreLines tells how much of a turn's log is not shown.
func (a *app) moreLines(turn turnName, n int) {
	text := "… " + plural(int64(n), "more line")
	a.notef("%s", a.noteStyle().dim(text+" of "+inLine(turn.agent)))
}
