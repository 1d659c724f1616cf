package rest

import (
	"net/http"
	"sync"

	"skep/host/internal/api/auth"
)

// streamLimiter bounds the open streams, in all, per tenant and per principal. Zero means
// no limit.
type streamLimiter struct {
	max, maxPerPrincipal int
	// shared is set where there are several tenants: each holds no more streams than are
	// free beside it, so that the next one finds room. A tenant's admin makes principals
	// as it likes.
	shared bool

	mu           sync.Mutex
	open         int
	perTenant    map[string]int
	perPrincipal map[string]int
}

func newStreamLimiter(most, mostEach int, shared bool) *streamLimiter {
	return &streamLimiter{max: most, maxPerPrincipal: mostEach, shared: shared, perTenant: map[string]int{}, perPrincipal: map[string]int{}}
}

// streamRetrySeconds is the Retry-After of a refused stream.
const streamRetrySeconds = 5

// acquireStream counts a stream in, or returns a fault. leave may be called more
// than once.
func (c *streamLimiter) acquireStream(who auth.Principal) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var f *fault
	key := "[server] max_streams"
	switch {
	case c.maxPerPrincipal > 0 && c.perPrincipal[who.String()] >= c.maxPerPrincipal:
		key = "[server] max_streams_per_principal"
		f = newFault(http.StatusTooManyRequests, "you have %d event streams open; close one, or raise [server] max_streams_per_principal", c.maxPerPrincipal)
	case c.max > 0 && c.open >= c.max:
		f = newFault(http.StatusServiceUnavailable, "%d event streams are open; come again later, or raise [server] max_streams", c.max)
	case c.max > 0 && c.shared && c.perTenant[who.Tenant] >= c.max-c.open:
		f = newFault(http.StatusTooManyRequests, "your tenant has %d event streams open, as many as are free for all others; close one, or raise [server] max_streams", c.perTenant[who.Tenant])
	default:
		c.open++
		c.perTenant[who.Tenant]++
		c.perPrincipal[who.String()]++
		return sync.OnceFunc(func() { c.releaseStream(who) }), nil
	}
	f.retryAfter, f.cause, f.key = streamRetrySeconds, "streams", key
	return nil, f
}

func (c *streamLimiter) releaseStream(who auth.Principal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.perTenant[who.Tenant]--; c.perTenant[who.Tenant] == 0 {
		delete(c.perTenant, who.Tenant)
	}
	if c.perPrincipal[who.String()]--; c.perPrincipal[who.String()] == 0 {
		delete(c.perPrincipal, who.String())
	}
}

// count returns the number of open streams.
func (c *streamLimiter) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.open)
}
