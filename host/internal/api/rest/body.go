package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
)

// readBody reads the whole body: net/http notices that the caller left only after
// that. A route without a body discards it, and does not read one that is too
// large.
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
		return newFault(http.StatusUnsupportedMediaType, "the request body has the Content-Encoding %s; send it without one", truncate(coding))
	}
	if kind := c.r.Header.Get("Content-Type"); rt.takesBody() && !isJSON(kind) {
		return newFault(http.StatusUnsupportedMediaType, "the request body has the Content-Type %s; send JSON as application/json", truncate(kind))
	}
	// MaxBytesReader needs net/http's own writer to close the connection.
	limited := http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, c.h.opt.MaxBody)
	paced := c.pace(limited)
	defer paced.release()
	if !rt.takesBody() {
		if _, err := io.Copy(io.Discard, paced); err == nil {
			c.w.clearReadDeadline()
		}
		return nil
	}
	body, err := io.ReadAll(paced)
	if err != nil {
		return c.h.bodyFault(err, c.h.tooLarge())
	}
	c.w.clearReadDeadline()
	c.body = body
	return nil
}

// Limits of a body that was refused as too large and is read past.
const (
	maxReadPast  = 8 << 20 // bytes
	readPastTime = 10 * time.Second
)

// readPast reads what is under way of a body that was refused as too large over HTTP/2: net/http
// resets the stream of a body that is not read, and curl loses the refusal with it
// (https://www.rfc-editor.org/rfc/rfc9113#section-8.1 lets clients keep it).
func (rec *recorder) readPast(r *http.Request) {
	if rec.status != http.StatusRequestEntityTooLarge || r.ProtoMajor != 2 {
		return
	}
	_ = http.NewResponseController(rec.ResponseWriter).SetReadDeadline(time.Now().Add(readPastTime))
	_, _ = io.CopyN(io.Discard, r.Body, maxReadPast) // who sends more loses the refusal
}

// bodyFault is the fault of a body that could not be read.
func (h *Handler) bodyFault(err error, tooLarge *fault) *fault {
	var over *http.MaxBytesError
	var refused *fault
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &over):
		return tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newFault(http.StatusRequestTimeout, "the request body did not arrive within %v and a second more for every %d bytes", h.opt.Stall, minBytesPerSecond)
	}
	return badRequest("error reading request: %v", err)
}

// isJSON reports whether a Content-Type is JSON's in UTF-8, missing, or the one that
// curl -d sends unless it is told otherwise.
func isJSON(kind string) bool {
	if kind == "" {
		return true
	}
	kind, params, err := mime.ParseMediaType(kind)
	if charset := params["charset"]; err != nil || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	return kind == "application/json" || kind == "application/x-www-form-urlencoded" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

func (h *Handler) tooLarge() *fault {
	return newFault(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes; raise [server] max_body", h.opt.MaxBody)
}

// bodyTooLarge refuses the body of a mount, whose limit may be its own.
func (c *call) bodyTooLarge(m Mount) *fault {
	if m.MaxBody == 0 {
		return c.h.tooLarge()
	}
	text := fmt.Sprintf("request body is larger than %d bytes", m.MaxBody)
	if m.BodyRemedy != "" {
		text += "; " + m.BodyRemedy
	}
	return newFault(http.StatusRequestEntityTooLarge, "%s", text)
}

// takesBody reports whether the route uses its body. MAIL's GET /task does.
func (rt route) takesBody() bool {
	switch rt.path {
	case "/task", tokensPath, answerPath, lookPath, logLevelPath:
		return true
	case "/interswarm/response":
		return false
	}
	return rt.method == http.MethodPost && !isSkepPath(rt.path)
}
