package telemetry

import (
	"fmt"
	"testing"
	"time"
)

// The first line of the next window says how many were skipped.
func TestLineLimiter(t *testing.T) {
	t.Parallel()
	l := NewLineLimiter()
	kind, now := LineKind{"acme", "a turn has failed", "fuel"}, time.Now()
	for i := range 25 {
		if skipped, ok := l.Admit(kind, now); ok != (i < linesPer) || skipped != 0 {
			t.Errorf("line %d: %d, %v", i, skipped, ok)
		}
	}
	now = now.Add(lineWindow)
	for _, want := range []int{15, 0} {
		if skipped, ok := l.Admit(kind, now); !ok || skipped != want {
			t.Errorf("%d lines were skipped, %v; want %d", skipped, ok, want)
		}
	}
	for i := range 3 * maxKinds {
		l.Admit(LineKind{Tenant: fmt.Sprint(i)}, now)
	}
	if len(l.kinds) > maxKinds {
		t.Errorf("%d kinds", len(l.kinds))
	}
}
