package swarm

import (
	"context"
	"sync"
	"time"
)

// Clock is a turn's clock. It stands still while the guest computes and moves only with
// recorded values: the time of an op's result, and the span of a sleep. So a repeated
// turn reads the same times. It is safe for concurrent use.
type Clock struct {
	mu   sync.Mutex
	now  time.Time
	host func() time.Time
	// held keeps advanceToHost from moving the clock.
	held bool
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
	if to.After(lastTime) {
		to = lastTime
	}
	if to.After(c.now) {
		c.now = to
	}
}

// lastTime is where the clock stops: later times cannot be encoded in JSON, and a
// cancelled guest can sleep for ages in no time.
var lastTime = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// advanceToHost advances the clock to the host's time, as an op's result does, and
// returns the clock's time.
func (c *Clock) advanceToHost() time.Time {
	now := c.host()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held && now.After(c.now) {
		c.now = now
	}
	return c.now
}

// holdBack stops or allows advancing to the host's time.
func (c *Clock) holdBack(held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = held
}

// Sleep waits for d and moves the clock by exactly d, also when ctx ends first and it
// returns the cause: a guest that wakes too early by its own clock would sleep again.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.Advance(c.Now().Add(d))
	return err
}
