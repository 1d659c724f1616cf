package http3

import (
	"context"
	"net/http"
	"sync"

	"github.com/quic-go/quic-go"
)

// maxNames bounds the streams of one connection whose names are known.
const maxNames = 1024

// Stream is the QUIC stream on which a request came.
type Stream struct {
	// ID is its number, the same for no other request of its connection.
	ID   int64
	conn *conn
}

// conn has what the requests of one connection share.
type conn struct {
	mu    sync.Mutex
	names map[int64]string
	order []int64
}

type (
	connKey   struct{}
	streamKey struct{}
)

// withConn gives the requests of a connection their conn.
func withConn(ctx context.Context, _ *quic.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{names: map[int64]string{}})
}

// withStream gives a request its stream.
func withStream(r *http.Request) *http.Request {
	c, _ := r.Context().Value(connKey{}).(*conn)
	body, ok := r.Body.(interface{ StreamID() quic.StreamID })
	if !ok || c == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), streamKey{}, Stream{int64(body.StreamID()), c}))
}

// StreamOf returns the stream of a request; ok is false for one that did not come by HTTP/3.
func StreamOf(ctx context.Context) (s Stream, ok bool) {
	s, ok = ctx.Value(streamKey{}).(Stream)
	return s, ok
}

// SetName gives the stream a name, which the requests of its connection find. The oldest ones
// are forgotten when there are many.
func (s Stream) SetName(name string) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if _, has := s.conn.names[s.ID]; !has {
		s.conn.order = append(s.conn.order, s.ID)
	}
	s.conn.names[s.ID] = name
	if len(s.conn.order) > maxNames {
		delete(s.conn.names, s.conn.order[0])
		s.conn.order = s.conn.order[1:]
	}
}

// NameOf returns the name of another stream of the connection.
func (s Stream) NameOf(id int64) (name string, ok bool) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	name, ok = s.conn.names[id]
	return name, ok
}
