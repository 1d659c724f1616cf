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
		b.record(false, now)
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
		b.record(false, now)
	}
	now = now.Add(maxOpen)
	b.admit(now)
	b.record(true, now)
	if wait := b.admit(now); wait != 0 || b.state(now) != BreakerClosed {
		t.Errorf("it waits %s after an answer", wait)
	}
}
