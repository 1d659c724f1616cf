package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"skep/abi"
)

// hop is one request of a fetch: the first, or one that a redirect made.
type hop struct {
	c      *Client
	policy Policy
	key    string
	scrub  *scrubber

	method string
	to     target
	grant  Grant
	header http.Header
	body   []byte
	// left says that the fetch has been at another origin. Whoever sent it
	// there must not have secrets added to requests of its choice.
	left bool
}

// follow sends the request and those that redirects ask for.
func (h *hop) follow(ctx context.Context) (abi.FetchResponse, *abi.Error) {
	for range max(h.c.o.MaxRedirects, 0) + 1 {
		resp, broken := h.send(ctx)
		if broken != nil {
			return abi.FetchResponse{}, broken
		}
		location := resp.Header.Get("Location")
		if location == "" || !isRedirect(resp.StatusCode) {
			return h.answer(ctx, resp)
		}
		_ = resp.Body.Close()
		if h, broken = h.redirected(resp.StatusCode, location); broken != nil {
			return abi.FetchResponse{}, broken
		}
	}
	return abi.FetchResponse{}, fault(abi.CodeLimit, ReasonRedirect, "more than %d redirects, the last to %s", max(h.c.o.MaxRedirects, 0), h.shown())
}

// secrets are those that this hop carries.
func (h *hop) secrets() []Secret {
	var out []Secret
	for _, s := range h.policy.Secrets {
		if !h.left && s.applies(h.method, h.to) {
			out = append(out, s)
		}
	}
	return out
}

// request is what goes over the wire.
func (h *hop) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if len(h.body) > 0 {
		body = bytes.NewReader(h.body)
	}
	req, err := http.NewRequestWithContext(ctx, h.method, h.to.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header = h.header.Clone()
	if req.Header["User-Agent"] == nil {
		req.Header.Set("User-Agent", userAgent)
	}
	req.Header.Set("Accept-Encoding", "identity")
	if h.key != "" && !h.grant.NoKey {
		req.Header.Set(keyHeader, h.key)
	}
	added := map[string]bool{}
	for _, s := range h.secrets() {
		if !added[s.header] {
			req.Header[s.header] = []string{s.value}
			added[s.header] = true
		}
	}
	return req, nil
}

// send makes the request and reads the header of the answer.
func (h *hop) send(ctx context.Context) (*http.Response, *abi.Error) {
	req, err := h.request(ctx)
	if err != nil {
		return nil, fault(abi.CodeInternal, ReasonRequest, "the request to %s cannot be made", h.shown())
	}
	exchange := h.sendAlone
	if h.c.kept != nil {
		exchange = h.sendKept
	}
	resp, l, err := exchange(req)
	var broken *unreached
	switch {
	case err != nil && over(ctx):
		return nil, h.ended(ctx)
	case errors.As(err, &broken):
		return nil, broken.because
	case err != nil && l != nil && l.read.Load() >= h.c.o.MaxHeader:
		return nil, fault(abi.CodeLimit, ReasonHeaders, "the header of the answer from %s is larger than %d bytes", h.shown(), h.c.o.MaxHeader)
	case err != nil:
		return nil, h.failed(ctx, err)
	case resp.StatusCode < 200:
		_ = resp.Body.Close()
		return nil, fault(abi.CodeUnavailable, ReasonProtocol, "%s answered with status %d, which ends no exchange", h.shown(), resp.StatusCode)
	}
	return resp, nil
}

// sendAlone makes the request on a connection of its own.
func (h *hop) sendAlone(req *http.Request) (*http.Response, *line, error) {
	l, broken := h.line(req.Context())
	if broken != nil {
		return nil, nil, &unreached{broken}
	}
	resp, err := l.transport(h.c.o.MaxHeader).RoundTrip(req)
	if err != nil {
		_ = l.Close()
	}
	return resp, l, err
}

// unreached is the guest's error of a connection that could not be opened, on its
// way through package net/http.
type unreached struct{ because *abi.Error }

func (u *unreached) Error() string { return u.because.Message }

// failed turns an error of the network into the guest's. What package net/http
// says of an answer may quote it, so it is not repeated.
func (h *hop) failed(ctx context.Context, err error) *abi.Error {
	if over(ctx) {
		return h.ended(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fault(abi.CodeUnavailable, ReasonConnection, "the connection to %s broke before the answer was whole", h.shown())
	}
	return fault(abi.CodeUnavailable, ReasonProtocol, "the answer from %s is not HTTP/1.1", h.shown())
}

// over reports whether the time of the fetch is up or it was called off. A
// socket may notice the deadline a moment before the context does.
func over(ctx context.Context) bool {
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// ended says why the context of the fetch is done.
func (h *hop) ended(ctx context.Context) *abi.Error {
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return fault(abi.CodeDeadline, ReasonTimeout, "no whole answer from %s within %s ([limits.http] timeout)", h.shown(), h.c.o.Timeout)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault(abi.CodeDeadline, ReasonTurn, "the caller ran out of time before a whole answer from %s", h.shown())
	}
	return fault(abi.CodeCancelled, ReasonTurn, "the fetch from %s was called off", h.shown())
}

// shown is the hop's URL for messages, without query.
func (h *hop) shown() string { return cut(h.scrub.text(h.to.origin() + h.to.path)) }

// ungranted says what would grant the hop and little more: its method, and its path
// where that can be shown whole. way tells how the fetch came here.
func (h *hop) ungranted(reason, way string) *abi.Error {
	url := h.shown()
	if url != h.to.origin()+h.to.path {
		url = h.to.origin()
	}
	return fault(abi.CodeDenied, reason, "%s%s %s is not granted; it takes %q added to allow.http%s",
		way, h.method, h.shown(), h.method+" "+url, h.policy.in())
}
