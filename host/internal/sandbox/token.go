package sandbox

import (
	"context"
	"time"
)

// longestSlice bounds what one stretch between two looks at the time counts as
// computing. A slice of fuel never takes that long: when it seems to, the
// machine gave the processor to somebody else meanwhile.
const longestSlice = 20 * time.Millisecond

// token is the run's claim on the processor, and counts how long the run
// computed.
type token struct {
	cpu   CPU // nil computes unasked
	limit time.Duration
	held  bool
	since time.Time // when it was taken
	mark  time.Time // up to when used counts
	used  time.Duration
}

func (t *token) acquire(ctx context.Context) error {
	if t.cpu != nil {
		if err := t.cpu.Acquire(ctx); err != nil {
			return err
		}
	}
	now := time.Now()
	t.held, t.since, t.mark = true, now, now
	return nil
}

// release gives the token back; without one it does nothing.
func (t *token) release() {
	if !t.held {
		return
	}
	t.count(time.Now())
	t.held = false
	if t.cpu != nil {
		t.cpu.Release()
	}
}

// count adds the time up to now and reports whether the limit is kept.
func (t *token) count(now time.Time) bool {
	t.used += min(now.Sub(t.mark), longestSlice)
	t.mark = now
	return t.used <= t.limit
}

// restart forgets the time used so far.
func (t *token) restart() { t.used, t.mark = 0, time.Now() }
