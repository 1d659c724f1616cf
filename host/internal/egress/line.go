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

	"skep/abi"
)

// line is a connection. A hop has it alone, or for the time of its exchange.
type line struct {
	net.Conn
	to   target
	read atomic.Int64 // bytes of HTTP received in this exchange

	// taken and given count the exchanges that were begun and ended.
	taken, given atomic.Int64

	start sync.Once
	begun chan struct{} // closed by the first write, or by Close
}

func newLine(conn net.Conn, to target) *line {
	return &line{Conn: conn, to: to, begun: make(chan struct{})}
}

// Read counts what is read. It waits for the request to begin, and drops what
// comes between two exchanges: of a server that speaks first, package net/http
// would write the words to the host's log.
func (l *line) Read(p []byte) (int, error) {
	<-l.begun
	n, err := l.Conn.Read(p)
	if idle := l.given.Load(); n > 0 && idle > 0 && idle == l.taken.Load() {
		return 0, io.EOF
	}
	l.read.Add(int64(n))
	return n, err
}

// take begins an exchange on a line that is kept, put ends it. The next may take
// the line before the last has put it down.
func (l *line) take() {
	l.read.Store(0)
	l.taken.Add(1)
}

func (l *line) put() { l.given.Add(1) }

func (l *line) Write(p []byte) (int, error) {
	l.begin()
	return l.Conn.Write(p)
}

// Close also ends a Read that waits.
func (l *line) Close() error {
	l.begin()
	return l.Conn.Close()
}

func (l *line) begin() { l.start.Do(func() { close(l.begun) }) }

// transport serves one request on the line. It never asks the environment for
// a proxy, keeps no connection, and leaves bodies as they come.
func (l *line) transport(maxHeader int64) *http.Transport {
	hand := func(_ context.Context, _, asked string) (net.Conn, error) {
		if asked != l.to.dialled() {
			return nil, errElsewhere
		}
		return l, nil
	}
	return &http.Transport{
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		DialContext:            hand,
		DialTLSContext:         hand,
	}
}

var errElsewhere = errors.New("the connection would lead elsewhere")

// line opens the connection of a hop, with TLS where the URL asks for it.
// Package net/http is handed the connection ready: its own dials outlive the
// request they are for.
func (h *hop) line(ctx context.Context) (*line, *abi.Error) {
	if h.c.o.Connect > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.c.o.Connect)
		defer cancel()
	}
	conn, broken := h.connect(ctx)
	if broken != nil {
		return nil, broken
	}
	if h.to.scheme == "http" {
		return newLine(conn, h.to), nil
	}
	secure := tls.Client(conn, &tls.Config{
		ServerName: h.to.host,
		RootCAs:    h.c.o.RootCAs,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
	})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fault(abi.CodeUnavailable, ReasonTLS, "TLS with %s failed: %s", h.shown(), cut(h.scrub.text(err.Error())))
	}
	return newLine(secure, h.to), nil
}

// connect resolves, checks, then dials the checked addresses in turn. Each has
// an equal share of the time that is left, so a dead one leaves some to the
// others.
func (h *hop) connect(ctx context.Context) (net.Conn, *abi.Error) {
	addrs, broken := h.addresses(ctx)
	if broken != nil {
		return nil, broken
	}
	var last error
	for i, a := range addrs {
		part, cancel := share(ctx, len(addrs)-i)
		conn, err := h.open(part, netip.AddrPortFrom(a, h.to.port))
		cancel()
		if err == nil {
			return conn, nil
		}
		last = err
	}
	if errors.Is(last, syscall.ECONNREFUSED) {
		return nil, fault(abi.CodeUnavailable, ReasonRefused, "%s refused the connection", h.shown())
	}
	return nil, fault(abi.CodeUnavailable, ReasonConnect, "%s cannot be reached", h.shown())
}

// share makes a context with a part of the time that is left. Every fetch has
// a deadline, and so has a connection that is kept.
func share(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}

// open connects to a checked address. The socket is checked once more right
// before it connects: nothing between may have changed where it goes.
func (h *hop) open(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if h.c.o.Dial != nil {
		return h.c.o.Dial(ctx, to)
	}
	d := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return h.recheck(to, address)
	}}
	return d.DialContext(ctx, "tcp", to.String())
}

func (h *hop) recheck(to netip.AddrPort, address string) error {
	got, err := netip.ParseAddrPort(address)
	if err != nil || got != to || !h.mayReach(got.Addr()) {
		return errElsewhere
	}
	return nil
}
