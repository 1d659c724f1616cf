package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Pauses between repeats.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 3 * time.Second
)

// backoff counts the repeats of one call since its last success.
type backoff struct {
	next  time.Duration
	since time.Time // of the first failure
}

// reset forgets the failures: something has come through.
func (b *backoff) reset() { *b = backoff{} }

// wait pauses before a repeat. It fails with the reason to give up: the
// failure itself when patience has run out, or the cause for which ctx ended.
func (c *Client) wait(ctx context.Context, b *backoff, least time.Duration, failure error) error {
	first := b.since.IsZero()
	if first {
		b.since, b.next = time.Now(), firstPause
	}
	pause := max(least, b.next) + rand.N(b.next/2)
	b.next = min(2*b.next, lastPause)
	if time.Since(b.since)+pause > c.opt.Patience {
		return failure
	}
	if c.opt.OnRetry != nil && !(first && c.mayTellMore()) {
		c.opt.OnRetry(reason(failure), pause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mayTellMore reports whether the reason of a failure is probably still to come. A
// host that does not take the caller's certificate says so after the handshake, and
// what it says can be lost with the connection.
func (c *Client) mayTellMore() bool {
	return strings.HasPrefix(c.base, "https:") && !c.reached.Load()
}

// retry calls try until it succeeds, fails for good, or patience runs out. What
// is not safe to do twice is not tried again once the host may have begun it.
func (c *Client) retry(ctx context.Context, safe bool, try func() error) error {
	var b backoff
	for {
		start := time.Now()
		err := try()
		if err == nil {
			return nil
		}
		if held(err, start) {
			b.reset()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		least, ok := c.passing(err)
		if !ok || !safe && begun(err) {
			return c.final(err)
		}
		if err := c.wait(ctx, &b, least, err); err != nil {
			return c.final(err)
		}
	}
}

// held reports whether a failed call had a working connection for a while, so
// that its failure is the first of a new series.
func held(err error, start time.Time) bool {
	var conn *lost
	if errors.As(err, &conn) && conn.dialling() {
		return false
	}
	return time.Since(start) > lastPause
}

// final gives a failure the form in which callers see it.
func (c *Client) final(err error) error {
	var conn *lost
	if errors.As(err, &conn) || errors.Is(err, errGoingDown) {
		return &Unreachable{URL: c.base, Err: reason(err)}
	}
	return reason(err)
}

// reason takes the inner types of this package off an error.
func reason(err error) error {
	var conn *lost
	var refusal *refused
	switch {
	case errors.As(err, &conn):
		var call *url.Error
		if errors.As(conn.error, &call) {
			return call.Err // the URL is told by whoever tells the reason
		}
		return conn.error
	case errors.As(err, &refusal):
		return refusal.cause
	}
	return err
}

// retryAfter reads the header of that name, seconds or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
