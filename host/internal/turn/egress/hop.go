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

// hop is one request of a fetch: the first one, or one that follows a redirect.
type hop struct {
	client *Client
	policy Policy
	key    string
	scrub  *Scrubber

	method string
	target target
	grant  Grant
	header http.Header
	body   []byte
	// leftOrigin is set once the fetch has been at another origin. From then on no secrets
	// are added: the other origin may have chosen the request.
	leftOrigin bool
	// upgrades means that the request asks for another protocol on its connection, which
	// HTTP/2 does not have.
	upgrades bool
	// clearHTTP2 means that the request goes by HTTP/2 to an http URL.
	clearHTTP2 bool
}

// follow sends the request and follows redirects.
func (h *hop) follow(ctx context.Context) (abi.FetchResponse, *abi.Error) {
	for range max(h.client.opt.MaxRedirects, 0) + 1 {
		resp, broken := h.send(ctx)
		if broken != nil {
			return abi.FetchResponse{}, broken
		}
		location := resp.Header.Get("Location")
		if location == "" || !isRedirect(resp.StatusCode) {
			return h.readResponse(ctx, resp)
		}
		_ = resp.Body.Close()
		if h, broken = h.redirect(resp.StatusCode, location); broken != nil {
			return abi.FetchResponse{}, broken
		}
	}
	return abi.FetchResponse{}, fault(abi.CodeLimit, ReasonRedirect, "more than %d redirects, the last to %s", max(h.client.opt.MaxRedirects, 0), h.displayURL())
}

// secrets returns the secrets that this hop carries.
func (h *hop) secrets() []Secret {
	var out []Secret
	for _, s := range h.policy.Secrets {
		if !h.leftOrigin && s.applies(h.method, h.target) {
			out = append(out, s)
		}
	}
	return out
}

// request builds the HTTP request.
func (h *hop) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if len(h.body) > 0 {
		body = bytes.NewReader(h.body)
	}
	req, err := http.NewRequestWithContext(ctx, h.method, h.target.String(), body)
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

// send makes the request and reads the header of the response.
func (h *hop) send(ctx context.Context) (*http.Response, *abi.Error) {
	req, err := h.request(ctx)
	if err != nil {
		return nil, fault(abi.CodeInternal, ReasonRequest, "the request to %s cannot be made", h.displayURL())
	}
	exchange := h.sendOnce
	if h.isPooled() {
		exchange = h.sendPooled
	}
	resp, conn, err := exchange(req)
	var broken *connectError
	switch {
	case err != nil && isDone(ctx):
		return nil, h.contextError(ctx)
	case errors.As(err, &broken):
		return nil, broken.cause
	case err != nil && conn != nil && conn.read.Load() >= h.client.opt.MaxResponseHeader:
		return nil, fault(abi.CodeLimit, ReasonHeaders, "the header of the answer from %s is larger than %d bytes", h.displayURL(), h.client.opt.MaxResponseHeader)
	case err != nil:
		return nil, h.networkError(ctx, err)
	case resp.StatusCode < 200:
		_ = resp.Body.Close()
		return nil, fault(abi.CodeUnavailable, ReasonProtocol, "%s answered with status %d, which ends no exchange", h.displayURL(), resp.StatusCode)
	}
	return resp, nil
}

// sendOnce makes the request on a connection of its own.
func (h *hop) sendOnce(req *http.Request) (*http.Response, *clientConn, error) {
	conn, broken := h.openConn(req.Context())
	if broken != nil {
		return nil, nil, &connectError{broken}
	}
	resp, err := conn.transport(h.client.opt.MaxResponseHeader).RoundTrip(req)
	if err != nil {
		_ = conn.Close()
	}
	return resp, conn, err
}

// connectError carries the guest's error for a failed connection through package net/http.
type connectError struct{ cause *abi.Error }

func (u *connectError) Error() string { return u.cause.Message }

// networkError converts a network error for the guest. Errors of package net/http may
// quote the response, so their text is dropped.
func (h *hop) networkError(ctx context.Context, err error) *abi.Error {
	if isDone(ctx) {
		return h.contextError(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fault(abi.CodeUnavailable, ReasonConnection, "the connection to %s broke before the answer was whole", h.displayURL())
	}
	return fault(abi.CodeUnavailable, ReasonProtocol, "the answer from %s is not HTTP/1.1", h.displayURL())
}

// isDone reports whether the fetch timed out or was cancelled. A socket may report the
// deadline a moment before the context does.
func isDone(ctx context.Context) bool {
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// contextError is the error for a fetch whose context is done.
func (h *hop) contextError(ctx context.Context) *abi.Error {
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return fault(abi.CodeDeadline, ReasonTimeout, "no whole answer from %s within %s ([limits.http] timeout)", h.displayURL(), h.client.opt.Timeout)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault(abi.CodeDeadline, ReasonTurn, "the caller ran out of time before a whole answer from %s", h.displayURL())
	}
	return fault(abi.CodeCancelled, ReasonTurn, "the fetch from %s was called off", h.displayURL())
}

// displayURL is the URL of the hop for messages, without the query.
func (h *hop) displayURL() string {
	if h.policy.HidePath {
		return truncate(h.target.origin())
	}
	return truncate(h.scrub.Text(h.target.origin() + h.target.path))
}

// grantError names the grant that the hop needs: its method and, unless the path must be
// shortened, its path. prefix explains where the URL came from.
func (h *hop) grantError(reason, prefix string) *abi.Error {
	url := h.displayURL()
	if url != h.target.origin()+h.target.path {
		url = h.target.origin()
	}
	return fault(abi.CodeDenied, reason, "%s%s %s is not granted; it takes %q added to allow.http%s",
		prefix, h.method, h.displayURL(), h.method+" "+url, h.policy.inTable())
}
