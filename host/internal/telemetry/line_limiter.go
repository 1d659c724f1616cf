package telemetry

import (
	"sync"
	"time"
)

// Bounds of the lines of one kind: linesPer of them in each window, of maxKinds kinds.
const (
	linesPer   = 10
	lineWindow = time.Minute
	maxKinds   = 10_000
)

// LineKind is what one tenant's lines have in common.
type LineKind struct{ Tenant, Text, Cause string }

// LineLimiter bounds the lines of the log, so that no tenant's failures fill it.
type LineLimiter struct {
	mu    sync.Mutex
	kinds map[LineKind]*lineCount
}

// lineCount counts the lines of the window that began at since.
type lineCount struct {
	since          time.Time
	shown, skipped int
}

// NewLineLimiter returns a limiter that has seen no line.
func NewLineLimiter() *LineLimiter { return &LineLimiter{kinds: map[LineKind]*lineCount{}} }

// Admit reports whether a line is shown, and how many of its kind were not since the last
// that was.
func (l *LineLimiter) Admit(kind LineKind, now time.Time) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.kinds[kind]
	if n == nil {
		if len(l.kinds) >= maxKinds {
			clear(l.kinds)
		}
		n = &lineCount{since: now}
		l.kinds[kind] = n
	}
	if now.Sub(n.since) >= lineWindow {
		n.since, n.shown = now, 0
	}
	if n.shown >= linesPer {
		n.skipped++
		return 0, false
	}
	n.shown++
	skipped, n.skipped = n.skipped, 0
	return skipped, true
}
