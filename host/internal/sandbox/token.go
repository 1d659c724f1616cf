package sandbox

import (
	"context"
	"time"
)

// token is the run's claim on the processor, and counts how long it was held.
type token struct {
	cpu   CPU // nil computes unasked
	limit time.Duration
	key   string
	held  bool
	since time.Time
	used  time.Duration // before since
}

func (t *token) acquire(ctx context.Context) error {
	if t.cpu != nil {
		if err := t.cpu.Acquire(ctx); err != nil {
			return err
		}
	}
	t.held, t.since = true, time.Now()
	return nil
}

// release gives the token back; without one it does nothing.
func (t *token) release() {
	if !t.held {
		return
	}
	t.held = false
	t.used += time.Since(t.since)
	if t.cpu != nil {
		t.cpu.Release()
	}
}

// restart forgets the time used so far.
func (t *token) restart() { t.used, t.since = 0, time.Now() }
