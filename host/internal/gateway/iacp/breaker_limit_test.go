package iacp

import (
	"fmt"
	"testing"
	"time"
)

// trip lets an agent fail until its breaker is open.
func trip(all *breakers, key breakerKey, now time.Time) {
	for range tripAfter {
		all.record(key, true, now)
	}
}

// TestBreakersLimit (I-075): open breakers of as many agents as are counted, which are not asked any
// more, leave their places to others some time after their rest, and not before.
func TestBreakersLimit(t *testing.T) {
	t.Parallel()
	all, now := newBreakers(time.Second), time.Now()
	for n := range maxBreakers {
		trip(all, breakerKey{agent: fmt.Sprint("gone-", n)}, now)
	}
	for _, c := range []struct {
		after time.Duration
		open  bool
	}{{time.Second / 2, false}, {time.Hour, true}} {
		key, at := breakerKey{agent: c.after.String()}, now.Add(c.after)
		if trip(all, key, at); all.isOpen(key, at) != c.open {
			t.Errorf("after %s the breaker of another agent that fails is open: %t, want %t", c.after, !c.open, c.open)
		}
	}
}

// TestEmptyProbe (I-075): a probe that shows nothing of its agent keeps no other message back.
func TestEmptyProbe(t *testing.T) {
	t.Parallel()
	all, now, key := newBreakers(time.Second), time.Now(), breakerKey{agent: "depot-1"}
	trip(all, key, now)
	now = now.Add(time.Second)
	for n := range 3 {
		if after := all.admit(key, now); after > 0 {
			t.Errorf("probe %d waits for %s", n, after)
		}
		all.recordTell(key, false, now)
	}
	if all.admit(key, now); all.admit(key, now) != probeTime {
		t.Error("there are two probes at a time")
	}
}
