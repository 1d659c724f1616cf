package listen

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
	gate  *gate
	certs *Certificates
}

// Open listens on a TCP address. With certs it speaks TLS, HTTP/2 where the caller
// does, and HTTP/1.1; without, HTTP/1.1 in the clear.
func Open(ctx context.Context, address string, limits Limits, certs *Certificates) (*Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	socket, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, errNotTCP), l.Close())
	}
	return &Listener{newGate(socket, limits), certs}, nil
}

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return l.gate.Addr() }

// Secure reports whether it speaks TLS.
func (l *Listener) Secure() bool { return l.certs != nil }

// Counts are the connections so far.
func (l *Listener) Counts() Counts { return l.gate.counts() }

// Close lets nobody in any more. Closing twice is no error.
func (l *Listener) Close() error {
	if err := l.gate.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Serve answers with s, whose ConnState and TLSConfig it takes for itself, until s
// is shut down.
func (l *Listener) Serve(s *http.Server) error {
	s.ConnState = l.gate.note
	serve := func() error { return s.Serve(l.gate) }
	if l.certs != nil {
		s.TLSConfig = &tls.Config{GetConfigForClient: l.certs.config, MinVersion: tls.VersionTLS12}
		serve = func() error { return s.ServeTLS(l.gate, "", "") }
	}
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}
