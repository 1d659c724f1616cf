package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// forwardsMount reports whether another host can answer a request of a mount. One over gRPC it
// cannot: hosts send each other HTTP/1.1.
func (h *Handler) forwardsMount(m Mount, r *http.Request) bool {
	return h.opt.OtherHosts != nil && m.MaxBody >= 0 && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// serveMount runs the handler of a mount, and has another host answer where that works on the task.
func (c *call) serveMount(m Mount) error {
	if !c.forwards {
		m.Handler.ServeHTTP(c.w, c.r)
		return nil
	}
	err := c.tryMount(m, c.r.Body, c.isHop)
	moved, ok := err.(*swarm.Elsewhere)
	if !ok {
		return err
	}
	if _, err := io.Copy(io.Discard, c.r.Body); err != nil { // the rest is kept
		return c.h.bodyFault(err, c.bodyTooLarge(m))
	}
	return c.relay(route{handle: func(c *call) error { return c.tryMount(m, io.NopCloser(bytes.NewReader(c.body)), true) }}, moved)
}

// tryMount runs the handler of a mount. An error means that it has answered nothing: another host
// works on the task, or another host has sent the request and this one stops. charged is set where
// the limits of the caller were charged.
func (c *call) tryMount(m Mount, body io.ReadCloser, charged bool) error {
	f := &swarm.Forwarding{Key: c.hopKey()[1:], Charged: charged, Hop: c.isHop}
	w := &heldWriter{recorder: c.w, forwarding: f}
	header := c.w.Header().Clone()
	r := c.r.WithContext(swarm.WithForwarding(c.ctx(), f))
	r.Body = body
	m.Handler.ServeHTTP(w, r)
	err := w.refusal()
	switch {
	case err == nil && w.held != 0:
		w.begin()
	case err != nil && c.w.status != 0:
		panic(http.ErrAbortHandler) // a part of an answer must not look whole
	case err != nil:
		clear(c.w.Header())
		maps.Copy(c.w.Header(), header)
	}
	return err
}

// heldWriter holds the status of a mount's answer back until its first byte or flush. An answer
// that another host gives is not written.
type heldWriter struct {
	*recorder
	forwarding *swarm.Forwarding
	held       int // the status, 0 for none
}

// refusal returns what the runtime has refused if another host answers the request for it.
func (w *heldWriter) refusal() error {
	err := w.forwarding.Noted()
	if err == swarm.ErrDraining && !w.forwarding.Hop {
		return nil
	}
	return err
}

// begin writes the status that was held back. It reports whether the handler answers.
func (w *heldWriter) begin() bool {
	if w.refusal() != nil {
		return false
	}
	if w.held != 0 {
		w.recorder.WriteHeader(w.held)
		w.held = 0
	}
	return true
}

// WriteHeader implements [http.ResponseWriter].
func (w *heldWriter) WriteHeader(status int) {
	if w.held == 0 && w.status == 0 {
		w.held = status
	}
}

// Write implements [http.ResponseWriter].
func (w *heldWriter) Write(p []byte) (int, error) {
	if !w.begin() {
		return len(p), nil
	}
	return w.recorder.Write(p)
}

// FlushError is for [http.ResponseController].
func (w *heldWriter) FlushError() error {
	if !w.begin() {
		return nil
	}
	return w.recorder.FlushError()
}

// Flush implements [http.Flusher].
func (w *heldWriter) Flush() { _ = w.FlushError() }

// setHopCaller names a caller without a token to another host.
func (c *call) setHopCaller(header http.Header, body []byte) {
	if c.token == "" && c.w.who.Role != "" {
		raw, _ := json.Marshal(c.w.who) // texts always encode
		header.Set(callerHeader, url.PathEscape(string(raw)))
		header.Set(bodyHeader, hashBody(body))
	}
}

func hashBody(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// checkHopBody refuses a request of a caller whom another host has named if its body is not the one
// that the host has sent.
func (c *call) checkHopBody(m Mount) error {
	if !c.isHop || c.r.Header.Get(callerHeader) == "" {
		return nil
	}
	body, err := io.ReadAll(c.r.Body)
	if err != nil {
		return c.h.bodyFault(err, c.bodyTooLarge(m))
	}
	if hashBody(body) != c.r.Header.Get(bodyHeader) {
		return unauthorized("the proof of the other host is for another body")
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// hopCaller returns the caller whom another host has named.
func (c *call) hopCaller() (who auth.Principal, ok bool) {
	text, err := url.PathUnescape(c.r.Header.Get(callerHeader))
	if !c.isHop || err != nil || text == "" {
		return who, false
	}
	return who, json.Unmarshal([]byte(text), &who) == nil && who.Role != ""
}

// flushedWriter sends each piece at once: it may be an event that a reader waits for.
type flushedWriter struct{ *recorder }

func (w flushedWriter) Write(p []byte) (int, error) {
	n, err := w.recorder.Write(p)
	if err == nil {
		err = w.FlushError()
	}
	return n, err
}
