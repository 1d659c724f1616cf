package rest

import (
	"errors"
	"io"
	"net/http"
	"os"
)

// readBody reads the whole body, because only then does net/http notice that
// the caller leaves. A route that takes none ignores what it is sent.
func (c *call) readBody(rt route) error {
	if c.r.Body == http.NoBody {
		return nil
	}
	// MaxBytesReader must see net/http's own writer to close the connection.
	limited := http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, c.h.opt.MaxBody)
	if !rt.takesBody() {
		if _, err := io.Copy(io.Discard, limited); err == nil {
			c.w.unlimitReading()
		}
		return nil
	}
	body, err := io.ReadAll(limited)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return newFault(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes; raise [server] max_body", c.h.opt.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newFault(http.StatusRequestTimeout, "the request body did not arrive within %v", c.h.opt.Stall)
	case err != nil:
		return badRequest("error reading request: %v", err)
	}
	c.w.unlimitReading()
	c.body = body
	return nil
}

// takesBody reports whether the route looks at its body. MAIL's GET /task does.
func (rt route) takesBody() bool {
	return rt.path == "/message" || rt.path == "/task" || rt.path == "/health" && rt.method == http.MethodPost
}
