package uamp_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// TestAckBesideReading (U-061, U-062, U-064): a partner that takes no acknowledgement while it sends
// its stream stops neither it nor its reader.
func TestAckBesideReading(t *testing.T) {
	t.Parallel()
	overSome(t, []string{"http", "websocket"}, func(t *testing.T, o *out) {
		if o.overHTTP() {
			testAckUnanswered(t, o)
			return
		}
		testAckUnread(t, o)
	}, func(opt *uamp.Options) { opt.MaxWindow = 2 })
}

// chunks are so many deltas and the last one.
func chunks(n int) (list []string) {
	for range n {
		list = append(list, chunk("a"))
	}
	return append(list, `{"delta_seq":%d,"type":"done","payload":{"answer":"seven"}}`)
}

func testAckUnanswered(t *testing.T, o *out) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	o.p.URL = serveClear(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(text, []byte(`"intent":"progress"`)) {
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		o.lab.ServeHTTP(w, r)
	})).URL
	o.lab.does(streamAt, events(99, chunks(20)...))
	o.carry(t, "asked", outgoing("unanswered", mail.Request, "x", "how many?"), gateway.Taken)
	o.answered(t, "seven")
}

func testAckUnread(t *testing.T, o *out) {
	pipe := &stoppable{stopped: make(chan struct{}), released: make(chan struct{})}
	t.Cleanup(func() { close(pipe.released) })
	transport := &http.Transport{DialContext: pipe.dial}
	t.Cleanup(transport.CloseIdleConnections)
	o.p.Client = &http.Client{Transport: transport}
	o.lab.answersAsks(func(s *labSocket, e envelope.Signed) {
		close(pipe.stopped)
		s.receipt(e)
		for n := range 20 {
			s.delta(n, e.Stream, "chunk", `{"text":"a"}`)
		}
		s.delta(20, e.Stream, "done", `{"answer":"seven"}`)
	})
	o.carry(t, "asked", outgoing("unread", mail.Request, "x", "how many?"), gateway.Taken)
	o.answered(t, "seven")
}

// stoppable are connections that take nothing between two moments.
type stoppable struct{ stopped, released chan struct{} }

func (s *stoppable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	return &stoppableConn{Conn: c, of: s, closed: make(chan struct{})}, err
}

type stoppableConn struct {
	net.Conn
	of     *stoppable
	closed chan struct{}
	once   sync.Once
}

// Write implements [net.Conn].
func (c *stoppableConn) Write(b []byte) (int, error) {
	select {
	case <-c.of.stopped:
		select {
		case <-c.of.released:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	default:
	}
	return c.Conn.Write(b)
}

// Close implements [net.Conn].
func (c *stoppableConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
