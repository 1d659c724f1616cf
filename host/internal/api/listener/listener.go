package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// Listener is an open socket. Close it, or the server that it was given to.
type Listener struct {
	limit *limitListener
	certs *Certificates
}

// Open listens on a TCP address. With certs it serves TLS with HTTP/2 and
// HTTP/1.1, without certs HTTP/1.1 in clear text.
func Open(ctx context.Context, address string, limits Limits, certs *Certificates) (*Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	socket, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, errNotTCP), l.Close())
	}
	return &Listener{newLimitListener(socket, limits), certs}, nil
}

// Addr is the local address.
func (l *Listener) Addr() net.Addr { return l.limit.Addr() }

// Secure reports whether it serves TLS.
func (l *Listener) Secure() bool { return l.certs != nil }

// Counts returns the connections so far.
func (l *Listener) Counts() Counts { return l.limit.counts() }

// Close stops accepting. Closing twice is no error.
func (l *Listener) Close() error {
	if err := l.limit.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Accept returns the next connection within the limits, for a protocol without HTTP. With
// certs it speaks TLS. Until it is marked with [Mark] it counts as one that has asked for
// nothing yet.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.limit.Accept()
	if err != nil || l.certs == nil {
		return c, err
	}
	return tls.Server(c, l.certs.TLS()), nil
}

// Mark says whether a connection of [Listener.Accept] has work in progress. When all
// places are taken, one that has none makes room for another.
func Mark(c net.Conn, busy bool) {
	state := http.StateIdle
	if busy {
		state = http.StateActive
	}
	trackState(c, state)
}

// Serve serves s until it is shut down. It sets the ConnState and TLSConfig of s.
func (l *Listener) Serve(s *http.Server) error {
	s.ConnState = trackState
	serve := func() error { return s.Serve(l.limit) }
	if l.certs != nil {
		s.TLSConfig = l.certs.TLS()
		serve = func() error { return s.ServeTLS(l.limit, "", "") }
	}
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}
