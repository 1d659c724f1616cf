package router

import (
	"sync"
	"time"
)

// A peer that has failed tripAfter times in a row gets no requests for a while,
// and then the requests of one worker. The while grows from minOpen to maxOpen, and
// stays below the time after which its messages are given up.
const (
	tripAfter = 5
	minOpen   = time.Second
	maxOpen   = 30 * time.Second
	// probeWait is how long other workers wait for the probing one before they ask again.
	probeWait = 250 * time.Millisecond
	// probeTime is how long a probe keeps other workers back: a carrier's attempt lasts as
	// long as the partner works on a question.
	probeTime = 2 * time.Second
)

// BreakerState is the state of a peer's circuit breaker.
type BreakerState int

const (
	// BreakerClosed lets all requests through.
	BreakerClosed BreakerState = iota
	// BreakerTrying lets one request through, to probe the peer.
	BreakerTrying
	// BreakerOpen lets none through.
	BreakerOpen
)

// breaker is the circuit breaker of a peer.
type breaker struct {
	mu       sync.Mutex
	failures int
	openFor  time.Duration
	until    time.Time
	// probeUntil is when a probe stops holding other workers back; zero without a probe.
	probeUntil time.Time
	// up is closed when the peer is known to be up, nil while nothing waits for it.
	up chan struct{}
}

// admit returns how long to wait before asking again, 0 to go on. An admitted
// caller calls record.
func (b *breaker) admit(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failures < tripAfter:
		return 0
	case now.Before(b.until):
		return b.until.Sub(now)
	case now.Before(b.probeUntil):
		return probeWait
	}
	b.probeUntil = now.Add(probeTime)
	return 0
}

// release ends an admitted call in which the peer was not asked.
func (b *breaker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probeUntil = time.Time{}
}

// record notes whether the peer has answered an attempt. giveUp is how long its
// messages are tried. What fails while the breaker is open was begun before, and does not
// prolong it: else one moment's failures of many workers add up to maxOpen.
func (b *breaker) record(answered bool, now time.Time, giveUp time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probeUntil = time.Time{}
	if answered {
		b.failures, b.openFor = 0, 0
		return
	}
	if b.failures++; b.failures >= tripAfter && !now.Before(b.until) {
		b.openFor = min(max(2*b.openFor, minOpen), maxOpen, giveUp/2)
		b.until = now.Add(b.openFor)
	}
}

// markUp lets all requests through, because the peer is known to be up, and wakes what
// waits for it.
func (b *breaker) markUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.openFor = 0, 0
	if b.up != nil {
		close(b.up)
		b.up = nil
	}
}

// whenUp returns a channel that the next markUp closes.
func (b *breaker) whenUp() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.up == nil {
		b.up = make(chan struct{})
	}
	return b.up
}

// state returns the current state.
func (b *breaker) state(now time.Time) BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failures < tripAfter:
		return BreakerClosed
	case b.probeUntil.IsZero() && now.Before(b.until):
		return BreakerOpen
	}
	return BreakerTrying
}
