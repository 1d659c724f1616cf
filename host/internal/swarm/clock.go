package swarm

import (
	"context"
	"sync"
	"time"
)

// Clock is a turn's clock. It stands still while the guest computes and moves
// only with what is recorded: the time of an op's result, and the span of a
// sleep. So a turn that is run again reads the same times. It is safe for
// concurrent use.
type Clock struct {
	mu   sync.Mutex
	now  time.Time
	host func() time.Time
}

func newClock(start time.Time, host func() time.Time) *Clock {
	return &Clock{now: start, host: host}
}

// Now reads the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward to a time; an earlier time leaves it.
func (c *Clock) Advance(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to.After(c.now) {
		c.now = to
	}
}

// tick advances the clock to the host's time, as an op's result does, and
// returns what it reads then.
func (c *Clock) tick() time.Time {
	c.Advance(c.host())
	return c.Now()
}

// Sleep waits for d and moves the clock by exactly d. It ends early with the
// cause of ctx's end.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.Advance(c.Now().Add(d))
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
