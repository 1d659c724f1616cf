package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/turn/egress"
)

// Limits of a session over HTTP.
const (
	maxResumed     = 2                   // times that a broken stream is resumed
	streamOverhead = maxUnsolicitedBytes // bytes of a response stream beside the answer
	requestTimeout = 10 * time.Minute    // for requests that the library makes by itself
	versionHeader  = "Mcp-Protocol-Version"
)

var errRedirect = errors.New("it redirects, which is not followed; write where it is into url")

// connectHTTP prepares a connection to a server over streamable HTTP. Its network
// connections are not shared, and are closed with it.
func (s *Server) connectHTTP(w *filteredConn) error {
	grant, err := egress.ParseGrant(s.spec.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	o := egress.Options{Timeout: requestTimeout, ConnectTimeout: s.spec.Timeout, KeepAlive: egress.KeepAlive{MaxIdlePerHost: maxCalls}}
	if s.opt.Network != nil {
		s.opt.Network(&o)
	}
	client := egress.New(o)
	table := "[mcp." + s.spec.Name + "]"
	road := &httpTransport{
		client: client, table: table, token: s.spec.Token, maxBody: int64(s.maxFrame()) + streamOverhead, onTooLarge: w.fail, onError: w.noteNetwork,
		next: client.Transport(egress.Policy{
			Table: table, Grants: []egress.Grant{grant},
			AllowPrivate: s.spec.Private, PrivateNames: s.spec.Private, NoPublicHTTP: true,
		}),
	}
	t := &sdk.StreamableClientTransport{
		Endpoint: s.spec.URL, MaxRetries: maxResumed, MaxEventSize: int(road.maxBody) + 1, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: road, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }},
	}
	inner, err := t.Connect(context.Background())
	if err != nil {
		client.Close()
		return err
	}
	w.inner = &httpConn{inner, road}
	w.onInitialized = func(version string) { road.version.Store(version) }
	return nil
}

// httpConn also closes the network connections behind it.
type httpConn struct {
	sdk.Connection
	transport *httpTransport
}

// Close implements [sdk.Connection].
func (c *httpConn) Close() error {
	err := c.Connection.Close()
	c.transport.client.Close()
	return err
}

// httpTransport carries requests to a server and bounds the answers.
type httpTransport struct {
	client     *egress.Client
	next       http.RoundTripper
	table      string // of the server, in the file
	token      string
	maxBody    int64
	onTooLarge func(error)  // called for a response that is too large
	onError    func(error)  // called for a request without a whole response
	version    atomic.Value // of the protocol, once the server has sent it
}

// RoundTrip implements [http.RoundTripper].
func (r *httpTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := req.Context(), context.CancelFunc(func() {})
	if _, bounded := ctx.Deadline(); !bounded {
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
	}
	req = req.Clone(ctx)
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if v, ok := r.version.Load().(string); ok && req.Header.Get(versionHeader) == "" {
		req.Header.Set(versionHeader, v)
	}
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		err = r.statusError(resp)
	} else if ctx.Err() == nil {
		err = newNetworkError(err)
	}
	if err != nil {
		cancel()
		r.onError(err)
		return nil, err
	}
	resp.Body = &boundedBody{body: resp.Body, remaining: r.maxBody, transport: r, done: cancel}
	return resp, nil
}

// boundedBody is the body of a response, up to maxBody bytes.
type boundedBody struct {
	body      io.ReadCloser
	remaining int64
	transport *httpTransport
	done      context.CancelFunc
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		err := fmt.Errorf("%w: a body of more than %d bytes", errFrame, b.transport.maxBody)
		b.transport.onTooLarge(err)
		return 0, err
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	if err != nil && err != io.EOF {
		b.transport.onError(newNetworkError(err))
	}
	return n, err
}

// Close implements [io.Closer].
func (b *boundedBody) Close() error {
	defer b.done()
	return b.body.Close()
}
