package http3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"skep/host/internal/api/listener"
)

// Limits of one connection.
const (
	maxRequests   = 100      // open at once
	maxOtherSends = 8        // streams of one direction: HTTP/3 has three
	maxUnread     = 1 << 20  // bytes of one request
	maxAllUnread  = 4 << 20  // bytes of all requests
	maxHeader     = 32 << 10 // bytes of a request's header
	handshakeTime = 5 * time.Second
	idleTime      = time.Minute
	lingerTime    = time.Second // of a connection without requests, when the host stops
)

// Options of [Open]. All are required.
type Options struct {
	// TLS is the configuration of the certificate in use.
	TLS     *tls.Config
	Limits  listener.Limits
	Handler http.Handler
}

// Server serves HTTP/3. Make one with [Open]. All methods are safe for concurrent use.
type Server struct {
	socket  net.PacketConn
	quic    *quic.Transport
	in      *quic.Listener
	http    *http3.Server
	limiter *connLimiter
	handler http.Handler
	// running counts the requests; idle gets a value when there is none.
	running atomic.Int64
	idle    chan struct{}
}

// Open opens a UDP socket. An address costs a caller a round trip to be believed: what is sent
// from others' addresses holds no memory here
// (https://www.rfc-editor.org/rfc/rfc9000.html#section-8.1.2). Early data is not taken, since
// it may be a replay (https://www.rfc-editor.org/rfc/rfc8470.html).
func Open(ctx context.Context, address string, o Options) (*Server, error) {
	socket, err := new(net.ListenConfig).ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{socket: socket, limiter: newConnLimiter(o.Limits), handler: o.Handler, idle: make(chan struct{}, 1)}
	s.quic = &quic.Transport{
		Conn: socket, VerifySourceAddress: func(net.Addr) bool { return true },
		ConnContext: func(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
			return ctx, s.limiter.admit(ctx, info.RemoteAddr)
		},
	}
	s.in, err = s.quic.Listen(http3.ConfigureTLSConfig(o.TLS), &quic.Config{
		HandshakeIdleTimeout: handshakeTime, MaxIdleTimeout: idleTime, MaxIncomingStreams: maxRequests, MaxIncomingUniStreams: maxOtherSends,
		MaxStreamReceiveWindow: maxUnread, MaxConnectionReceiveWindow: maxAllUnread,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, err), s.quic.Close(), socket.Close())
	}
	s.http = &http3.Server{Handler: http.HandlerFunc(s.serve), MaxHeaderBytes: maxHeader, IdleTimeout: idleTime, ConnContext: withConn}
	return s, nil
}

// Addr is the local address.
func (s *Server) Addr() net.Addr { return s.socket.LocalAddr() }

// Connections is how many connections there are, those in their handshake among them.
func (s *Server) Connections() int { return s.limiter.count() }

// Serve answers requests until the server is shut down.
func (s *Server) Serve() error {
	if err := s.http.ServeListener(s.in); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP/3 at %s: %w", s.Addr(), err)
	}
	return nil
}

// serve serves one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer func() {
		if s.running.Add(-1) == 0 {
			select {
			case s.idle <- struct{}{}:
			default:
			}
		}
	}()
	s.handler.ServeHTTP(w, withStream(r))
}

// Shutdown takes no new requests, and waits for those that run until ctx ends. Then it closes
// the socket.
func (s *Server) Shutdown(ctx context.Context) error {
	quiet, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.http.Shutdown(quiet) // what it has waited for is seen below
	}()
	for s.running.Load() > 0 && ctx.Err() == nil {
		select {
		case <-s.idle:
		case <-ctx.Done():
		}
	}
	cut := ctx.Err()
	last := time.NewTimer(lingerTime)
	defer last.Stop()
	select { // callers end their connections when they have read the last answers
	case <-done:
	case <-last.C:
	case <-ctx.Done():
	}
	cancel()
	<-done
	return errors.Join(cut, s.Close())
}

// Close ends all connections and closes the socket. Closing twice is no error.
func (s *Server) Close() error {
	err := errors.Join(s.http.Close(), s.in.Close(), s.quic.Close())
	if closed := s.socket.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}
