package wasm

import (
	"context"
	"skep/host/internal/turn"
	"time"
)

// longestSlice bounds the computing time counted between two reads of the clock. A
// slice of fuel never takes that long: when it seems to, the system has run another
// process meanwhile.
const longestSlice = 20 * time.Millisecond

// cpuToken is the run's claim on the processor, and counts how long the run
// computed.
type cpuToken struct {
	cpu          turn.CPU // nil computes without tokens
	limit        time.Duration
	held         bool
	since        time.Time // when it was taken
	countedUntil time.Time // up to when used counts
	used         time.Duration
}

func (t *cpuToken) acquire(ctx context.Context) error {
	if t.cpu != nil {
		if err := t.cpu.Acquire(ctx); err != nil {
			return err
		}
	}
	now := time.Now()
	t.held, t.since, t.countedUntil = true, now, now
	return nil
}

// release gives the token back; without one it does nothing.
func (t *cpuToken) release() {
	if !t.held {
		return
	}
	t.countTime(time.Now())
	t.held = false
	if t.cpu != nil {
		t.cpu.Release()
	}
}

// countTime adds the time up to now and reports whether the limit is kept.
func (t *cpuToken) countTime(now time.Time) bool {
	t.used += min(now.Sub(t.countedUntil), longestSlice)
	t.countedUntil = now
	return t.used <= t.limit
}

// resetUsed sets the time used to zero.
func (t *cpuToken) resetUsed() { t.used, t.countedUntil = 0, time.Now() }
