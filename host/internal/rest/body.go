package rest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// readBody reads the whole body, because only then does net/http notice that
// the caller leaves. A route that takes none ignores what it is sent, and does not
// begin with what says that it is too large.
func (c *call) readBody(rt route) error {
	if c.r.Body == http.NoBody {
		return nil
	}
	if c.r.ContentLength > c.h.opt.MaxBody {
		if rt.takesBody() {
			return c.h.tooLarge()
		}
		return nil
	}
	if coding := c.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") && rt.takesBody() {
		return newFault(http.StatusUnsupportedMediaType, "the request body has the Content-Encoding %s; send it without one", clipped(coding))
	}
	// MaxBytesReader must see net/http's own writer to close the connection.
	limited := http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, c.h.opt.MaxBody)
	paced := &pacedBody{from: limited, w: c.w, begun: time.Now()}
	if !rt.takesBody() {
		if _, err := io.Copy(io.Discard, paced); err == nil {
			c.w.unlimitReading()
		}
		return nil
	}
	body, err := io.ReadAll(paced)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return c.h.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newFault(http.StatusRequestTimeout, "the request body did not arrive within %v and a second more for every %d bytes", c.h.opt.Stall, slowest)
	case err != nil:
		return badRequest("error reading request: %v", err)
	}
	c.w.unlimitReading()
	c.body = body
	return nil
}

func (h *Handler) tooLarge() *fault {
	return newFault(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes; raise [server] max_body", h.opt.MaxBody)
}

// slowest is the pace, in bytes a second, that gets a large body through.
const slowest = 64 << 10

// pacedBody gives each piece of a body its time, and all of them together as much
// as what has come so far has earned: whoever sends a byte now and then does not
// get more for it.
type pacedBody struct {
	from  io.Reader
	w     *recorder
	begun time.Time
	got   int64
}

func (b *pacedBody) Read(p []byte) (int, error) {
	now := time.Now()
	earned := time.Duration(float64(b.got) / slowest * float64(time.Second))
	until := b.begun.Add(b.w.stall + earned)
	if piece := now.Add(b.w.stall); piece.Before(until) {
		until = piece
	}
	b.w.readUntil(until)
	n, err := b.from.Read(p)
	b.got += int64(n)
	return n, err
}

// takesBody reports whether the route looks at its body. MAIL's GET /task does.
func (rt route) takesBody() bool {
	switch rt.path {
	case "/task", tokensPath:
		return true
	case "/interswarm/response":
		return false
	}
	return rt.method == http.MethodPost && !isOwn(rt.path)
}
