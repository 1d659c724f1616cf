package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/egress"
)

// Bounds of a session over HTTP.
const (
	maxResumed    = 2                // times that a stream which broke off is taken up
	streamRoom    = maxUnaskedBytes  // bytes of an answer's stream beside the answer
	askPatience   = 10 * time.Minute // for a request of the library's own
	versionHeader = "Mcp-Protocol-Version"
)

var errRedirect = errors.New("it redirects, which is not followed; write where it is into url")

// reach prepares a connection to a server of streamable HTTP. Its connections are
// its own, and end with it.
func (s *Server) reach(w *wire) error {
	grant, err := egress.ParseGrant(s.spec.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	o := egress.Options{Timeout: askPatience, Connect: s.spec.Timeout, Keep: egress.Keep{Idle: maxCalls}}
	if s.opt.Network != nil {
		s.opt.Network(&o)
	}
	client := egress.New(o)
	road := &road{
		client: client, token: s.spec.Token, most: int64(s.maxFrame()) + streamRoom, over: w.fail,
		through: client.Transport(egress.Policy{
			Table: "[mcp." + s.spec.Name + "]", Grants: []egress.Grant{grant},
			AllowPrivate: s.spec.Private, PrivateNames: s.spec.Private, NoPublicHTTP: true,
		}),
	}
	t := &mcp.StreamableClientTransport{
		Endpoint: s.spec.URL, MaxRetries: maxResumed, MaxEventSize: int(road.most) + 1, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: road, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }},
	}
	inner, err := t.Connect(context.Background())
	if err != nil {
		client.Close()
		return err
	}
	w.inner = &webConnection{inner, road}
	w.greeted = func(version string) { road.version.Store(version) }
	return nil
}

// webConnection closes the connections behind it, too.
type webConnection struct {
	mcp.Connection
	road *road
}

// Close implements [mcp.Connection].
func (c *webConnection) Close() error {
	err := c.Connection.Close()
	c.road.client.Close()
	return err
}

// road carries requests to a server, and bounds the answers.
type road struct {
	client  *egress.Client
	through http.RoundTripper
	token   string
	most    int64
	over    func(error)  // is told of an answer that is too large
	version atomic.Value // of the protocol, once the server has named it
}

// RoundTrip implements [http.RoundTripper].
func (r *road) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := req.Context(), context.CancelFunc(func() {})
	if _, bounded := ctx.Deadline(); !bounded {
		ctx, cancel = context.WithTimeout(ctx, askPatience)
	}
	req = req.Clone(ctx)
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if v, ok := r.version.Load().(string); ok && req.Header.Get(versionHeader) == "" {
		req.Header.Set(versionHeader, v)
	}
	resp, err := r.through.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &bounded{body: resp.Body, left: r.most, road: r, done: cancel}
	return resp, nil
}

// bounded is the body of an answer, up to a size.
type bounded struct {
	body io.ReadCloser
	left int64
	road *road
	done context.CancelFunc
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		err := fmt.Errorf("%w: a body of more than %d bytes", errFrame, b.road.most)
		b.road.over(err)
		return 0, err
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Close implements [io.Closer].
func (b *bounded) Close() error {
	defer b.done()
	return b.body.Close()
}
