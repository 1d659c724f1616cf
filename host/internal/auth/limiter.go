package auth

import (
	"math"
	"sync"
	"time"
)

// Rate bounds calls: so many within a span. Zero requests mean no limit.
type Rate struct {
	Requests int
	Per      time.Duration
}

// maxBuckets bounds the callers whose recent calls are remembered. Beyond it
// the oldest are forgotten early, which forgives them; it never refuses.
const maxBuckets = 1 << 16

// Limiter counts the calls of callers by name. Each has a bucket of
// Rate.Requests calls that fills up again within Rate.Per.
type Limiter struct {
	rate Rate
	now  func() time.Time
	max  int

	mu sync.Mutex
	// young holds the buckets used since turned, old those of the span before.
	// A bucket that was used in neither is full again.
	young, old map[string]bucket
	turned     time.Time
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
	return &Limiter{rate: rate, now: now, max: maxBuckets, young: map[string]bucket{}, turned: now()}
}

// Allow takes one call out of the caller's bucket. When there is none left it
// says how long it takes until there is, rounded up to a second.
func (l *Limiter) Allow(caller string) (wait time.Duration, ok bool) {
	if l.off() {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(caller, l.now())
	if wait, ok = l.room(b); ok {
		b.left--
	}
	l.young[caller] = b
	return wait, ok
}

// Room reports what Allow would, and takes nothing.
func (l *Limiter) Room(caller string) (wait time.Duration, ok bool) {
	if l.off() {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room(l.bucket(caller, l.now()))
}

// Charge takes one call out of the caller's bucket, which may be left with less
// than nothing.
func (l *Limiter) Charge(caller string) {
	if l.off() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(caller, l.now())
	b.left--
	l.young[caller] = b
}

func (l *Limiter) off() bool { return l.rate.Requests <= 0 || l.rate.Per <= 0 }

// room says whether a bucket has a call left, or when it will.
func (l *Limiter) room(b bucket) (wait time.Duration, ok bool) {
	if b.left >= 1 {
		return 0, true
	}
	wait = time.Duration((1 - b.left) * float64(l.rate.Per) / float64(l.rate.Requests))
	return time.Duration(math.Ceil(wait.Seconds())) * time.Second, false
}

// bucket returns the caller's bucket as it is now.
func (l *Limiter) bucket(caller string, now time.Time) bucket {
	if now.Sub(l.turned) >= l.rate.Per || len(l.young) >= l.max {
		l.young, l.old, l.turned = map[string]bucket{}, l.young, now
	}
	b, ok := l.young[caller]
	if !ok {
		b, ok = l.old[caller]
	}
	full := float64(l.rate.Requests)
	if !ok {
		return bucket{full, now}
	}
	gone := max(0, now.Sub(b.at))
	return bucket{min(full, b.left+full*float64(gone)/float64(l.rate.Per)), now}
}
