package router

import (
	"testing"
	"time"
)

// A peer that does not answer is left alone, then tried by one, and taken up again
// when it answers.
func TestBreaker(t *testing.T) {
	t.Parallel()
	var b breaker
	now := time.Unix(1e9, 0)
	for range tripAfter {
		if wait := b.admit(now); wait != 0 {
			t.Fatalf("it waits %s before it has tripped", wait)
		}
		if b.state(now) != BreakerClosed {
			t.Errorf("it is %d before it has tripped", b.state(now))
		}
		b.record(false, now, time.Hour)
	}
	for _, rest := range []time.Duration{minOpen, 2 * minOpen, 4 * minOpen} {
		if wait := b.admit(now); wait != rest {
			t.Errorf("it waits %s, want %s", wait, rest)
		}
		if b.state(now) != BreakerOpen {
			t.Errorf("it is %d at rest", b.state(now))
		}
		now = now.Add(rest)
		if wait := b.admit(now); wait != 0 {
			t.Errorf("nobody tries after %s", rest)
		}
		if wait := b.admit(now); wait != probeWait {
			t.Errorf("two try at once: %s", wait)
		}
		if b.state(now) != BreakerTrying {
			t.Errorf("it is %d while one tries", b.state(now))
		}
		b.record(false, now, time.Hour)
	}
	now = now.Add(maxOpen)
	b.admit(now)
	b.record(true, now, time.Hour)
	if wait := b.admit(now); wait != 0 || b.state(now) != BreakerClosed {
		t.Errorf("it waits %s after an answer", wait)
	}
}

// Attempts that fail at the same moment open the breaker once, however many they are.
func TestBreakerOpensOnceForAMoment(t *testing.T) {
	t.Parallel()
	var b breaker
	now := time.Unix(1e9, 0)
	for range 4 * tripAfter {
		b.admit(now)
	}
	for range 4 * tripAfter {
		b.record(false, now, time.Hour)
	}
	if wait := b.admit(now); wait != minOpen {
		t.Errorf("it waits %s, want %s", wait, minOpen)
	}
	now = now.Add(minOpen)
	b.admit(now)
	b.record(false, now, time.Hour)
	if wait := b.admit(now); wait != 2*minOpen {
		t.Errorf("after a probe that fails it waits %s, want %s", wait, 2*minOpen)
	}
}

// A probe that lasts keeps others back for a while, and not until it ends.
func TestBreakerWhileAProbeLasts(t *testing.T) {
	t.Parallel()
	var b breaker
	now := time.Unix(1e9, 0)
	for range tripAfter {
		b.admit(now)
		b.record(false, now, time.Hour)
	}
	now = now.Add(minOpen)
	b.admit(now)
	if wait := b.admit(now.Add(probeTime - 1)); wait != probeWait {
		t.Errorf("beside a probe another one waits %s", wait)
	}
	for range 2 {
		now = now.Add(probeTime)
		if wait := b.admit(now); wait != 0 {
			t.Errorf("after %s of a probe the next one waits %s", probeTime, wait)
		}
	}
}

// A probe that was not sent is no sign of the peer: the next may probe at once.
func TestBreakerAfterAnUnsentProbe(t *testing.T) {
	t.Parallel()
	var b breaker
	now := time.Unix(1e9, 0)
	for range tripAfter {
		b.admit(now)
		b.record(false, now, time.Hour)
	}
	now = now.Add(minOpen)
	for range 2 {
		if wait := b.admit(now); wait != 0 {
			t.Errorf("the probe waits %s", wait)
		}
		b.release()
	}
}

// The breaker rests for less than the time after which messages are given up, and not
// at all once the peer is known to be up.
func TestBreakerRests(t *testing.T) {
	t.Parallel()
	const giveUp = 3 * time.Second
	var b breaker
	now, longest := time.Unix(1e9, 0), time.Duration(0)
	for range tripAfter + 5 {
		now = now.Add(b.admit(now))
		b.record(false, now, giveUp)
		longest = max(longest, b.admit(now))
	}
	if longest != giveUp/2 {
		t.Errorf("it rests for %s", longest)
	}
	up := b.whenUp()
	b.markUp()
	select {
	case <-up:
	default:
		t.Error("what waits for the peer is not woken")
	}
	if wait := b.admit(now); wait != 0 || b.state(now) != BreakerClosed {
		t.Errorf("it waits %s after the peer is known to be up", wait)
	}
}
