package rest

import (
	"io"
	"time"
)

// minBytesPerSecond is the rate at which a large body may arrive.
const minBytesPerSecond = 64 << 10

// Pace bounds the time and the memory of what a tenant's callers send while it is on its
// way. It is safe for concurrent use.
type Pace struct {
	limiter *bodyLimiter
	tenant  string
	stall   time.Duration
}

// Pace returns the bounds of a tenant's messages that are no bodies of requests, as on a
// WebSocket: the same, and counted with the bodies.
func (h *Handler) Pace(tenant string) Pace { return Pace{h.bodies, tenant, h.opt.Stall} }

// Until returns the deadline of the next read of a message that began at start and has brought
// read bytes so far. Each read has the stall time. The whole message has it as well, and one
// second more for each minBytesPerSecond bytes, so that single bytes extend nothing.
func (p Pace) Until(start time.Time, read int64) time.Time {
	earned := time.Duration(float64(read) / minBytesPerSecond * float64(time.Second))
	until := start.Add(p.stall + earned)
	if piece := time.Now().Add(p.stall); piece.Before(until) {
		until = piece
	}
	return until
}

// Acquire counts bytes that have come, until Release. Its error is why there is no place for
// them.
func (p Pace) Acquire(n int64) error { return p.limiter.acquireBytes(p.tenant, n) }

// Release ends the count of bytes.
func (p Pace) Release(n int64) { p.limiter.releaseBytes(p.tenant, n) }

// pacedBody reads a body within a pace. What has arrived counts until release.
type pacedBody struct {
	r               io.Reader
	w               *recorder
	pace            Pace
	start           time.Time
	bytesRead, held int64
}

func (c *call) pace(r io.Reader) *pacedBody {
	return &pacedBody{r: r, w: c.w, pace: Pace{c.h.bodies, c.w.who.Tenant, c.w.stall}, start: time.Now()}
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.w.setReadDeadline(b.pace.Until(b.start, b.bytesRead))
	n, err := b.r.Read(p)
	b.bytesRead += int64(n)
	if refused := b.pace.Acquire(int64(n)); refused != nil {
		return 0, refused
	}
	b.held += int64(n)
	return n, err
}

// release may be called more than once.
func (b *pacedBody) release() {
	b.pace.Release(b.held)
	b.held = 0
}
