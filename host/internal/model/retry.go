package model

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

const (
	firstPause = 500 * time.Millisecond
	maxPause   = 8 * time.Second
	// maxAsked is the longest pause that a provider may ask for. Whoever wants
	// more is told to the caller, who can wait without holding a call open.
	maxAsked = time.Minute
)

// pause is how long to wait before the next try, and whether there is one. It is
// at least what the provider asks for, and ends before the call's time does.
func (r *remote) pause(ctx context.Context, broken *Error, tried int) (time.Duration, bool) {
	if !broken.passes() || tried >= r.s.Retries || broken.RetryAfter > maxAsked {
		return 0, false
	}
	d := min(firstPause<<min(tried, 8), maxPause)
	d = d/2 + time.Duration(float64(d/2)*r.o.Jitter())
	d = max(d, broken.RetryAfter)
	end, ok := ctx.Deadline()
	return d, !ok || time.Now().Add(d).Before(end)
}

// retryAfter reads how long a provider asks to wait: in milliseconds, in seconds
// with a fraction, or until a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return asked(ms, time.Millisecond)
	}
	value := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return asked(s, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// asked keeps a number of units within what is a duration.
func asked(n float64, unit time.Duration) time.Duration {
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(24*time.Hour)))
}
