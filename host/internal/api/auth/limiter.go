package auth

import (
	"math"
	"sync"
	"time"
)

// Rate is a number of calls within a span. Zero requests mean no limit.
type Rate struct {
	Requests int
	Per      time.Duration
	// Hosts counts the hosts that take calls, each of which allows its part of the requests. Nil is one host.
	Hosts func() int
}

// part is how many requests this host allows, rounded up.
func (r Rate) part() int {
	if r.Hosts == nil {
		return r.Requests
	}
	n := max(1, r.Hosts())
	return (r.Requests + n - 1) / n
}

// maxBuckets bounds the buckets in memory. Beyond it the oldest are dropped
// early, which makes them full; no call is refused for it.
const maxBuckets = 1 << 16

// Limiter limits the calls of callers by name. Each caller has a token bucket of
// Rate.Requests, or this host's part of them, that refills within Rate.Per.
type Limiter struct {
	rate Rate
	now  func() time.Time

	mu sync.Mutex
	// buckets drops a bucket after one to two spans without use.
	buckets generations[string, bucket]
}

type bucket struct {
	left float64
	at   time.Time
}

// NewLimiter returns a limiter in which all buckets are full. A nil now means
// [time.Now].
func NewLimiter(rate Rate, now func() time.Time) *Limiter {
	if now == nil {
		now = time.Now
	}
	return &Limiter{rate: rate, now: now, buckets: newGenerations[string, bucket](rate.Per, maxBuckets, now())}
}

// Allow takes one call out of the caller's bucket. When it is empty, wait is the
// time until it holds one, rounded up to a second.
func (l *Limiter) Allow(caller string) (wait time.Duration, ok bool) {
	if l.disabled() {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.currentBucket(caller, l.now())
	if wait, ok = l.available(b); ok {
		b.left--
	}
	l.buckets.young[caller] = b
	return wait, ok
}

// Check returns what Allow would and takes nothing.
func (l *Limiter) Check(caller string) (wait time.Duration, ok bool) {
	if l.disabled() {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.available(l.currentBucket(caller, l.now()))
}

// Charge takes one call out of the caller's bucket, which may fall below zero.
func (l *Limiter) Charge(caller string) {
	if l.disabled() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.currentBucket(caller, l.now())
	b.left--
	l.buckets.young[caller] = b
}

func (l *Limiter) disabled() bool { return l.rate.Requests <= 0 || l.rate.Per <= 0 }

// available reports whether a bucket holds a call, or how long until it does.
func (l *Limiter) available(b bucket) (wait time.Duration, ok bool) {
	if b.left >= 1 {
		return 0, true
	}
	wait = time.Duration((1 - b.left) * float64(l.rate.Per) / float64(l.rate.part()))
	return time.Duration(math.Ceil(wait.Seconds())) * time.Second, false
}

// currentBucket returns the caller's bucket, refilled up to now.
func (l *Limiter) currentBucket(caller string, now time.Time) bucket {
	l.buckets.rotate(now)
	b, ok := l.buckets.get(caller)
	full := float64(l.rate.part())
	if !ok {
		return bucket{full, now}
	}
	gone := max(0, now.Sub(b.at))
	return bucket{min(full, b.left+full*float64(gone)/float64(l.rate.Per)), now}
}
