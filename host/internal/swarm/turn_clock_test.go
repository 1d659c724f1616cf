package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"
)

// A sleep moves the clock by exactly its span, however it ends.
func TestSleep(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	c := newClock(start, time.Now)
	for _, d := range []time.Duration{-time.Hour, 0, time.Millisecond} {
		if err := c.Sleep(t.Context(), d); err != nil {
			t.Error(err)
		}
	}
	if got := c.Now().Sub(start); got != time.Millisecond {
		t.Errorf("the clock has moved by %v", got)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	before := c.Now()
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, enough) {
		t.Errorf("the cause is %v", err)
	}
	if got := c.Now().Sub(before); got != time.Hour {
		t.Errorf("a sleep of an hour that was cut short has moved the clock by %v", got)
	}
	for range 40 { // each of some 292 years
		_ = c.Sleep(ctx, math.MaxInt64)
	}
	if _, err := json.Marshal(c.Now()); err != nil {
		t.Errorf("after ages the clock reads what nothing can store: %v", err)
	}
}
