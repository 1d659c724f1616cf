package model

import (
	"cmp"
	"sync"
	"time"
)

// breaker lets a model rest whose calls fail one after the other, so that a dead provider
// does not cost each caller all retries.
type breaker struct {
	after int // 0 never rests
	rest  time.Duration

	mu       sync.Mutex
	failures int
	// until is when a call may try the model again, zero before it rests.
	until time.Time
	why   string
	short string
}

// admit returns the error of a call that is refused, nil for one that may go on. After the
// rest one call may try each rest, until a call is answered.
func (b *breaker) admit(now time.Time) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return nil
	case now.Before(b.until):
		e := newError(Resting, "%d calls in a row failed, so it rests until %s, and then one call tries it (%s); the keys are rest_after and rest",
			b.after, b.until.UTC().Format(time.RFC3339), b.why)
		e.RetryAfter, e.Short = b.until.Sub(now), "rests: "+b.short
		return e
	}
	b.until = now.Add(b.rest)
	return nil
}

// resting reports whether the model rests.
func (b *breaker) resting(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until)
}

// record notes how a call has ended. began is set if the model begins to rest, ended if
// its rest ends. Any answer of the provider ends it, also a refusal.
func (b *breaker) record(failed *Error, now time.Time) (began, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed == nil || failed.Kind != Unavailable && failed.Kind != Overloaded {
		ended = !b.until.IsZero()
		b.failures, b.until = 0, time.Time{}
		return false, ended
	}
	if b.failures++; b.after == 0 || b.failures < b.after {
		return false, false
	}
	began = b.until.IsZero()
	b.until, b.why, b.short = now.Add(b.rest), failed.Message, cmp.Or(failed.Short, string(failed.Kind))
	return began, false
}
