package cli

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

func TestBriefLog(t *testing.T) {
	t.Parallel()
	s := newShell(nil)
	a := newApp(s.Env)
	h := &briefLog{Handler: a.noteLogger(slog.LevelWarn).Handler(), more: a.noteSkippedLines}
	log := slog.New(h)
	lines := func(turn int64, n int) {
		for range n {
			log.LogAttrs(context.Background(), slog.LevelWarn, "line", slog.String("agent", "chief"),
				slog.String("task_id", "t"), slog.Int64("turn", turn))
		}
	}
	lines(1, 113)
	lines(2, 10)
	lines(3, 11)
	for range 20 {
		log.Warn("host")
	}
	log.Info("quiet")
	h.flush()
	h.flush()
	got := s.stderr.String()
	for part, want := range map[string]int{
		"line  ": 30, "… 103 more lines of chief\n": 1, "… 1 more line of chief\n": 1, "host": 20, "quiet": 0, "… ": 2,
	} {
		if n := strings.Count(got, part); n != want {
			t.Errorf("%q stands there %d times, want %d", part, n, want)
		}
	}
}

// What an agent adds to a line is shown as what the host adds: by name.
func TestNoteLogShowsFields(t *testing.T) {
	t.Parallel()
	s := newShell(nil)
	newApp(s.Env).noteLogger(slog.LevelWarn).Warn("line", "agent", "chief", "fields", map[string]any{"wait": "2s", "n": 3.5, "error": "UNAVAILABLE: no\nanswer"})
	if got, want := s.stderr.String(), "line  agent=chief  error=UNAVAILABLE: no\\nanswer  n=3.5  wait=2s\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
}
