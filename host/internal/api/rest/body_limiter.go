package rest

import (
	"net/http"
	"sync"
)

// bodyLimiter bounds the bytes of bodies that are being read, in all and per tenant: a
// caller may take a minute for each, and needs no more than many connections to fill the
// memory.
type bodyLimiter struct {
	max int64 // bytes
	// shared is set where there are several tenants: each holds no more than is free
	// beside it.
	shared bool

	mu        sync.Mutex
	held      int64
	perTenant map[string]int64
}

// Bodies that are being read may hold maxHeldBodies bytes, or some of the largest ones if
// that is more.
const (
	maxHeldBodies    = 256 << 20
	minLargeBodies   = 4
	bodyRetrySeconds = 5
)

func newBodyLimiter(most, largest int64, shared bool) *bodyLimiter {
	l := &bodyLimiter{max: most, shared: shared, perTenant: map[string]int64{}}
	if most == 0 {
		l.max = maxHeldBodies
		l.fit(largest)
	}
	return l
}

// fit makes room for bodies of a size. It is called before the first request.
func (l *bodyLimiter) fit(largest int64) { l.max = max(l.max, minLargeBodies*largest) }

// acquireBytes counts bytes of a tenant's body in, or returns a fault.
func (l *bodyLimiter) acquireBytes(tenant string, n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var f *fault
	switch held := l.perTenant[tenant]; {
	case l.held+n > l.max:
		f = newFault(http.StatusServiceUnavailable, "request bodies of %d bytes are on their way; come again later", l.held)
	case l.shared && held+n > l.max-l.held:
		f = newFault(http.StatusTooManyRequests, "your tenant has request bodies of %d bytes on their way, as many as are free for all others; send fewer at once", held)
	default:
		l.held += n
		l.perTenant[tenant] += n
		return nil
	}
	f.retryAfter, f.cause = bodyRetrySeconds, "bodies"
	return f
}

func (l *bodyLimiter) releaseBytes(tenant string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= n
	if l.perTenant[tenant] -= n; l.perTenant[tenant] == 0 {
		delete(l.perTenant, tenant)
	}
}
