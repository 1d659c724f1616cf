package router

import (
	"sync"
	"time"
)

// A peer that has failed tripAfter times in a row is left alone for a while, and
// then tried by one lane alone; the while grows from firstRest to lastRest.
const (
	tripAfter = 5
	firstRest = time.Second
	lastRest  = 30 * time.Second
	// probeWait is how long others wait for the one that tries.
	probeWait = 250 * time.Millisecond
)

// BreakerState says whether letters go to a peer.
type BreakerState int

const (
	// BreakerClosed lets all letters go.
	BreakerClosed BreakerState = iota
	// BreakerTrying lets one go, to see whether the peer answers again.
	BreakerTrying
	// BreakerOpen lets none go.
	BreakerOpen
)

// breaker keeps lanes from a peer that does not answer.
type breaker struct {
	mu       sync.Mutex
	failures int
	rest     time.Duration
	until    time.Time
	probing  bool
}

// admit returns how long to wait before asking again, zero for none. Whoever is
// admitted reports.
func (b *breaker) admit(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failures < tripAfter:
		return 0
	case now.Before(b.until):
		return b.until.Sub(now)
	case b.probing:
		return probeWait
	}
	b.probing = true
	return 0
}

// report tells how an attempt went: whether the peer has answered at all.
func (b *breaker) report(answered bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if answered {
		b.failures, b.rest = 0, 0
		return
	}
	if b.failures++; b.failures >= tripAfter {
		b.rest = min(max(2*b.rest, firstRest), lastRest)
		b.until = now.Add(b.rest)
	}
}

// state is how the breaker stands.
func (b *breaker) state(now time.Time) BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failures < tripAfter:
		return BreakerClosed
	case !b.probing && now.Before(b.until):
		return BreakerOpen
	}
	return BreakerTrying
}
