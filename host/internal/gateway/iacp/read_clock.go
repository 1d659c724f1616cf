package iacp

import (
	"sync"
	"time"
)

// readClock measures for how long a connection was read. It stands while the queue is full or there is no
// room for a frame: what the peer has sent behind, as an acknowledgement, is not seen then. It is safe for
// concurrent use.
type readClock struct {
	mu    sync.Mutex
	total time.Duration
	since time.Time // zero while it stands
}

func (r *readClock) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = time.Now()
}

func (r *readClock) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total, r.since = r.elapsed(), time.Time{}
}

// elapsed is for how long the connection was read. r.mu is held.
func (r *readClock) elapsed() time.Duration {
	if r.since.IsZero() {
		return r.total
	}
	return r.total + time.Since(r.since)
}

func (r *readClock) now() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.elapsed()
}

// readTimer fires when its connection was read for a time.
type readTimer struct {
	*time.Timer
	clock    *readClock
	by       time.Duration // on the clock
	interval time.Duration
}

// timerChecks is how often a timer looks at a clock that stands, in its time.
const timerChecks = 8

func newReadTimer(clock *readClock, limit time.Duration) *readTimer {
	return &readTimer{time.NewTimer(limit), clock, clock.now() + limit, limit / timerChecks}
}

// isOver reports whether the time is over when the timer has fired. If not, it will fire again.
func (t *readTimer) isOver() bool {
	left := t.by - t.clock.now()
	if left > 0 {
		t.Reset(max(left, t.interval))
	}
	return left <= 0
}
