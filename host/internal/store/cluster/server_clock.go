package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// clockTolerance is how far a host's own clock may be from the server's without a warning.
const clockTolerance = 5 * time.Second

// serverClock is the server's clock as this host follows it: hosts whose own clocks differ agree on deadlines,
// expiries and days. It never goes back. No lease depends on it.
type serverClock struct {
	own func() time.Time // only its differences count

	mu sync.Mutex
	// It was base at the time at of the own clock, and is ahead of the server, until which has caught up it goes at
	// half speed.
	base, at time.Time
	ahead    time.Duration
}

// Now is the time of the server.
func (c *serverClock) Now() time.Time {
	own := c.own()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timeAt(own)
}

// timeAt is the time of the server at a time of the own clock. The caller holds c.mu.
func (c *serverClock) timeAt(own time.Time) time.Time {
	passed := own.Sub(c.at)
	return c.base.Add(passed - min(passed/2, c.ahead))
}

// set takes over that the server answered with a time. It was read between two times of the own clock.
func (c *serverClock) set(server, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, latest := c.timeAt(answered), server.Add(answered.Sub(asked))
	if c.at.IsZero() || server.After(now) {
		now = server
	}
	c.base, c.at, c.ahead = now, answered, max(0, now.Sub(latest))
}

// Now is the server's time, as the last beat has read it, and the time since by this host's clock.
func (m *Member) Now() time.Time { return m.clock.Now() }

// readClock reads the server's time.
func (m *Member) readClock(ctx context.Context, s *session) error {
	asked := m.opts.Now()
	var server time.Time
	err := s.query(ctx, "SELECT clock_timestamp()", nil, func(r pgx.Rows) error { return r.Scan(&server) })
	if err != nil {
		return fmt.Errorf("read the server's clock: %w", err)
	}
	m.clock.set(server, asked, m.opts.Now())
	return nil
}

// beginClock reads the server's time the first time, and warns of a clock of this host that is wrong.
func (m *Member) beginClock(ctx context.Context) error {
	if err := m.readClock(ctx, &m.moves); err != nil {
		return err
	}
	if off := m.opts.Now().Sub(m.Now()); off.Abs() > clockTolerance {
		m.opts.Logger.Warn("the clock of this host differs from the server's, by which tasks go: set it right, the log and credentials go by it",
			"ahead", off.Round(time.Second))
	}
	return nil
}
