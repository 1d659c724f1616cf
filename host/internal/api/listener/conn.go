package listener

import (
	"container/list"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// conn is an accepted connection.
type conn struct {
	*net.TCPConn
	limit   *limitListener
	network netip.Prefix
	// element is its place in queue; nil while a request is in progress.
	element *list.Element
	queue   *list.List
	since   time.Time
	closed  bool
	// wrote is set after the first write.
	wrote atomic.Bool
}

// Close closes the connection and frees its place.
func (c *conn) Close() error {
	c.limit.mu.Lock()
	c.limit.removeLocked(c)
	c.limit.mu.Unlock()
	return c.TCPConn.Close()
}

// Write sends. The first write before any request answers the begin of a TLS
// handshake.
func (c *conn) Write(b []byte) (int, error) {
	if !c.wrote.Swap(true) {
		c.limit.markHandshaking(c, time.Now())
	}
	return c.TCPConn.Write(b)
}

// CloseWrite marks the connection as lingering: net/http closes its side when the
// client sends more than was accepted, and waits for the client to read.
// Lingering connections are evicted first.
func (c *conn) CloseWrite() error {
	c.limit.markLingering(c)
	return c.TCPConn.CloseWrite()
}

// SetWriteDeadline with a time that has passed has the meaning of CloseWrite: TLS
// does so when net/http closes its side.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		c.limit.markLingering(c)
	}
	return c.TCPConn.SetWriteDeadline(t)
}
