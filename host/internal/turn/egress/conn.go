package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"skep/abi"
)

// clientConn is a connection that a hop owns for one exchange or, without a pool, for
// good.
type clientConn struct {
	net.Conn
	target target
	read   atomic.Int64 // bytes of HTTP received in this exchange

	// begun and ended count exchanges.
	begun, ended atomic.Int64

	// http2 is set for a connection that speaks HTTP/2 over TLS, clearHTTP2 for one that speaks
	// it in the clear.
	http2      *tls.Conn
	clearHTTP2 bool

	releaseOnce sync.Once
	wrote       chan struct{} // closed by the first write, or by Close
}

func newClientConn(conn net.Conn, to target) *clientConn {
	return &clientConn{Conn: conn, target: to, wrote: make(chan struct{})}
}

// Read counts received bytes. It waits for the first write, and drops bytes that arrive
// between two exchanges: package net/http would write them to the host's log.
func (c *clientConn) Read(p []byte) (int, error) {
	<-c.wrote
	n, err := c.Conn.Read(p)
	if idle := c.ended.Load(); n > 0 && idle > 0 && idle == c.begun.Load() {
		return 0, io.EOF
	}
	c.read.Add(int64(n))
	return n, err
}

// beginExchange and endExchange mark the limits of an exchange on a pooled connection. The
// next exchange may begin before the previous one is marked as ended.
func (c *clientConn) beginExchange() {
	c.read.Store(0)
	c.begun.Add(1)
}

func (c *clientConn) endExchange() { c.ended.Add(1) }

func (c *clientConn) Write(p []byte) (int, error) {
	c.releaseReads()
	return c.Conn.Write(p)
}

// Close also unblocks a waiting Read.
func (c *clientConn) Close() error {
	c.releaseReads()
	return c.Conn.Close()
}

// forTransport is the connection as package net/http takes it: it speaks HTTP/2 over its
// own type alone.
func (c *clientConn) forTransport() net.Conn {
	if c.http2 != nil {
		return c.http2
	}
	return c
}

// http2Pings let HTTP/2 find out that the other end of a connection is gone.
func http2Pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
}

// protocols are the versions of HTTP in the clear, nil for HTTP/1.1
// (https://www.rfc-editor.org/rfc/rfc9113.html#section-3.3).
func protocols(clearHTTP2 bool) *http.Protocols {
	if !clearHTTP2 {
		return nil
	}
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

func (c *clientConn) releaseReads() { c.releaseOnce.Do(func() { close(c.wrote) }) }

// transport serves one request on the connection. It uses no proxy of the environment,
// keeps no connection, and does not decode bodies.
func (c *clientConn) transport(maxHeader int64) *http.Transport {
	hand := func(_ context.Context, _, asked string) (net.Conn, error) {
		if asked != c.target.hostPort() {
			return nil, errElsewhere
		}
		return c.forTransport(), nil
	}
	return &http.Transport{
		ForceAttemptHTTP2:      c.http2 != nil,
		Protocols:              protocols(c.clearHTTP2),
		HTTP2:                  http2Pings(),
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		DialContext:            hand,
		DialTLSContext:         hand,
	}
}

var errElsewhere = errors.New("the connection would lead elsewhere")

// openConn opens the connection of a hop, with TLS for https. The connection is opened
// here because the dials of package net/http outlive the request.
func (h *hop) openConn(ctx context.Context) (*clientConn, *abi.Error) {
	offered, http2 := []string{"http/1.1"}, h.policy.HTTP2 && !h.upgrades
	switch {
	case http2:
		offered = []string{protoHTTP2}
	case h.policy.OfferHTTP2 && !h.upgrades:
		offered = []string{protoHTTP2, "http/1.1"}
	}
	conn, broken := h.openRaw(ctx, offered)
	if broken != nil {
		return nil, broken
	}
	c := newClientConn(conn, h.target)
	c.clearHTTP2 = h.clearHTTP2
	secure, isTLS := conn.(*tls.Conn)
	switch chosen := isTLS && secure.ConnectionState().NegotiatedProtocol == protoHTTP2; {
	case chosen:
		c.http2 = secure
	case isTLS && http2:
		_ = conn.Close()
		return nil, fault(abi.CodeUnavailable, ReasonTLS, "%s does not speak HTTP/2", h.displayURL())
	}
	return c, nil
}

// protoHTTP2 is the name of HTTP/2 in a TLS handshake.
const protoHTTP2 = "h2"

func (h *hop) tlsConfig() *tls.Config {
	c := &tls.Config{ServerName: h.target.host, RootCAs: h.client.opt.RootCAs, MinVersion: tls.VersionTLS12}
	if h.policy.HTTP2 {
		c.MinVersion = tls.VersionTLS13
	}
	if own := h.policy.TLS; own != nil {
		c.Certificates = own.Certificates
		if own.RootCAs != nil {
			c.RootCAs = own.RootCAs
		}
	}
	return c
}

// connect connects to a checked address of the host.
func (h *hop) connect(ctx context.Context) (conn net.Conn, broken *abi.Error) {
	broken = h.dialEach(ctx, func(ctx context.Context, to netip.AddrPort) (err error) {
		conn, err = h.dialAddress(ctx, to)
		return err
	})
	return conn, broken
}

// dialEach resolves the host, checks its addresses and calls dial with them in order, until
// one succeeds. Each call gets an equal share of the remaining time, so that a dead address
// leaves time for the others.
func (h *hop) dialEach(ctx context.Context, dial func(context.Context, netip.AddrPort) error) *abi.Error {
	addrs, broken := h.addresses(ctx)
	if broken != nil {
		return broken
	}
	var last error
	for i, a := range addrs {
		part, cancel := withShare(ctx, len(addrs)-i)
		last = dial(part, netip.AddrPortFrom(a, h.target.port))
		cancel()
		if last == nil {
			return nil
		}
	}
	if errors.Is(last, syscall.ECONNREFUSED) {
		return fault(abi.CodeUnavailable, ReasonRefused, "%s refused the connection", h.displayURL())
	}
	if secure, ok := errors.AsType[*quic.TransportError](last); ok && secure.ErrorCode.IsCryptoError() {
		return fault(abi.CodeUnavailable, ReasonTLS, "TLS with %s failed: %s", h.displayURL(), truncate(h.scrub.Text(secure.Error())))
	}
	return fault(abi.CodeUnavailable, ReasonConnect, "%s cannot be reached", h.displayURL())
}

// withShare returns a context with 1/parts of the remaining time. ctx has a deadline: each
// fetch and each pooled connection sets one.
func withShare(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}

// dialAddress connects to a checked address. The address of the socket is checked again
// right before it connects, so that nothing in between can redirect it.
func (h *hop) dialAddress(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if h.client.opt.Dial != nil {
		return h.client.opt.Dial(ctx, to)
	}
	d := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return h.checkDialled(to, address)
	}}
	return d.DialContext(ctx, "tcp", to.String())
}

func (h *hop) checkDialled(to netip.AddrPort, address string) error {
	got, err := netip.ParseAddrPort(address)
	if err != nil || got != to || !h.mayReach(got.Addr()) {
		return errElsewhere
	}
	return nil
}
