package egress

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go/http3"

	"skep/abi"
)

// KeepAlive sets which connections a [Client] leaves open for later requests.
type KeepAlive struct {
	// MaxIdlePerHost bounds the idle connections to one host. Zero keeps none.
	MaxIdlePerHost int
	// IdleTimeout is how long an idle connection stays open. Default 90 s.
	IdleTimeout time.Duration
}

// connPool holds the idle connections, separately for each set of dial rules: a request
// must not use a connection that it could not have opened itself.
type connPool map[dialRules]*http.Transport

// dialRules are the parts of a policy that decide which addresses a request may reach, and how.
// clearHTTP2 is HTTP/2 at http URLs.
type dialRules struct{ private, names, secure, http2, clearHTTP2 bool }

func newConnPool(c *Client) connPool {
	k, either := connPool{}, []bool{false, true}
	for _, private := range either {
		for _, names := range either {
			for _, secure := range either {
				for _, http2 := range either {
					for _, clearHTTP2 := range either {
						rules := dialRules{private, names, secure, http2, clearHTTP2}
						k[rules] = c.pooledTransport(rules)
					}
				}
			}
		}
	}
	return k
}

// newHTTP3Pool makes the transports of HTTP/3 with kept connections.
func newHTTP3Pool(c *Client) map[dialRules]*http3.Transport {
	k := map[dialRules]*http3.Transport{}
	for rules := range c.pool {
		if !rules.http2 && !rules.clearHTTP2 {
			k[rules] = c.pooledHTTP3(rules)
		}
	}
	return k
}

func (h *hop) dialRules() dialRules {
	return dialRules{h.policy.AllowPrivate, h.policy.PrivateNames && h.grant.hosts == exact, h.policy.NoPublicHTTP, h.policy.HTTP2, h.clearHTTP2}
}

// pooledKey is the key of a request's context for its [pooledRequest].
type pooledKey struct{}

// pooledRequest is what the dialer of a pool has of the request that it dials for.
type pooledRequest struct {
	// privateKey is of the request's policy, for the words of a refusal.
	privateKey string
	dials      atomic.Int32
}

// maxDials bounds the connections that are opened for one request. A host may send requests
// of HTTP/2 away to other connections, and package net/http goes on with that for as long as
// the request has time.
const maxDials = 4

// pooledTransport returns a transport that dials with the same checks as a hop.
func (c *Client) pooledTransport(r dialRules) *http.Transport {
	dial := func(scheme string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, _, address string) (net.Conn, error) {
			h, err := c.pooledHop(ctx, r, scheme, address)
			if err != nil {
				return nil, err
			}
			conn, broken := h.openConn(ctx)
			if broken != nil {
				return nil, &connectError{broken}
			}
			return conn.forTransport(), nil
		}
	}
	return &http.Transport{
		ForceAttemptHTTP2:      r.http2,
		Protocols:              protocols(r.clearHTTP2),
		HTTP2:                  http2Pings(),
		DisableCompression:     true,
		MaxResponseHeaderBytes: c.opt.MaxResponseHeader,
		DialContext:            dial("http"),
		DialTLSContext:         dial("https"),
		MaxIdleConnsPerHost:    c.opt.KeepAlive.MaxIdlePerHost,
		IdleConnTimeout:        c.opt.KeepAlive.IdleTimeout,
	}
}

// pooledHop is what opens a connection of a pool to a host and port, for a request that ctx
// has.
func (c *Client) pooledHop(ctx context.Context, r dialRules, scheme, address string) (*hop, error) {
	t, err := parseTarget(scheme + "://" + address)
	if err != nil {
		return nil, err
	}
	h := &hop{
		client: c, policy: Policy{AllowPrivate: r.private, PrivateNames: r.names, NoPublicHTTP: r.secure, HTTP2: r.http2},
		grant: Grant{hosts: exact}, target: t, scrub: NewScrubber(),
	}
	if of, ok := ctx.Value(pooledKey{}).(*pooledRequest); ok {
		h.policy.PrivateKey = of.privateKey
		if of.dials.Add(1) > maxDials {
			return nil, &connectError{fault(abi.CodeUnavailable, ReasonConnection, "%s has ended %d connections without an answer", h.displayURL(), maxDials)}
		}
	}
	return h, nil
}

// Close closes the idle connections. The client stays usable. A client without [KeepAlive]
// needs no Close.
func (c *Client) Close() {
	for _, t := range c.pool {
		t.CloseIdleConnections()
	}
	for _, t := range c.pool3 {
		t.CloseIdleConnections()
	}
}

// isPooled reports whether a request may use a connection of others, and leave its own to them.
func (h *hop) isPooled() bool {
	return h.client.pool != nil && h.policy.TLS == nil && !h.policy.OfferHTTP2 && !h.upgrades
}

// sendPooled makes the request on an idle connection, or on a new one. conn is nil if the
// request got no connection.
func (h *hop) sendPooled(req *http.Request) (resp *http.Response, conn *clientConn, err error) {
	trace := &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			if own, ok := got.Conn.(*clientConn); ok { // HTTP/2 counts its streams itself
				conn = own
				conn.beginExchange()
			}
		},
		PutIdleConn: func(error) { conn.endExchange() }, // of HTTP/1.1 alone
	}
	ctx := context.WithValue(req.Context(), pooledKey{}, &pooledRequest{privateKey: h.policy.PrivateKey})
	resp, err = h.client.pool[h.dialRules()].RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	return resp, conn, err
}
