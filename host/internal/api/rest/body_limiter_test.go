package rest

import (
	"errors"
	"net/http"
	"testing"
)

// A tenant's bodies leave half of the room for another tenant's, and what was read gives
// its room back.
func TestBodyLimiter(t *testing.T) {
	t.Parallel()
	wantStatus := func(err error, want int) {
		t.Helper()
		var f *fault
		if errors.As(err, &f); want == 0 && err != nil || want != 0 && (f == nil || f.status != want || f.retryAfter == 0) {
			t.Errorf("acquireBytes() = %v, want status %d", err, want)
		}
	}
	l := newBodyLimiter(1000, 0, true)
	wantStatus(l.acquireBytes("acme", 500), 0)
	wantStatus(l.acquireBytes("acme", 1), http.StatusTooManyRequests)
	wantStatus(l.acquireBytes("globex", 250), 0)
	wantStatus(l.acquireBytes("globex", 1), http.StatusTooManyRequests)
	l.releaseBytes("acme", 500)
	wantStatus(l.acquireBytes("globex", 250), 0)
	l.releaseBytes("globex", 500)
	if l.held != 0 || len(l.perTenant) != 0 {
		t.Errorf("%d bytes are held, of %v", l.held, l.perTenant)
	}

	l = newBodyLimiter(1000, 0, false)
	wantStatus(l.acquireBytes("default", 1000), 0)
	wantStatus(l.acquireBytes("default", 1), http.StatusServiceUnavailable)
	if l := newBodyLimiter(0, 1<<30, false); l.max != 4<<30 {
		t.Errorf("%d bytes for bodies of 1 GiB", l.max)
	}
}
