package model

import (
	"context"
	"net/http"
	"time"

	"skep/host/internal/turn/egress"
)

const (
	firstPause = 500 * time.Millisecond
	lastPause  = 8 * time.Second
	// maxRetryAfter is the longest pause before a retry. For a longer one the call fails,
	// and the caller can wait without an open call.
	maxRetryAfter = time.Minute
)

// retryDelay returns the pause before the next attempt, and whether there is one. It is at
// least the pause that the provider asks for, and ends before the call's deadline.
func (r *remoteModel) retryDelay(ctx context.Context, broken *Error, tried int) (time.Duration, bool) {
	if !broken.isTemporary() || tried >= r.spec.Retries || broken.RetryAfter > maxRetryAfter {
		return 0, false
	}
	d := min(firstPause<<min(tried, 8), lastPause)
	d = d/2 + time.Duration(float64(d/2)*r.opt.Jitter())
	d = max(d, broken.RetryAfter)
	end, ok := ctx.Deadline()
	return d, !ok || time.Now().Add(d).Before(end)
}

// retryAfter returns the pause that a provider asks for.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if d, ok := egress.RetryAfterMS(header.Get("Retry-After-Ms")); ok {
		return d
	}
	return egress.RetryAfter(header.Get("Retry-After"), now)
}
