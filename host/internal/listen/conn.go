package listen

import (
	"container/list"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// conn is a connection that was let in.
type conn struct {
	*net.TCPConn
	gate *gate
	from netip.Prefix
	// place is where it waits to be asked something, or to be closed; nil while
	// it has a request.
	place *list.Element
	among *list.List
	since time.Time
	gone  bool
	// spoken says that the host has sent something.
	spoken atomic.Bool
}

// Close closes the connection and makes room for another.
func (c *conn) Close() error {
	c.gate.mu.Lock()
	c.gate.forget(c)
	c.gate.mu.Unlock()
	return c.TCPConn.Close()
}

// Write sends. The first that is sent to one who has not asked anything answers
// the begin of a handshake.
func (c *conn) Write(b []byte) (int, error) {
	if !c.spoken.Swap(true) {
		c.gate.greet(c, time.Now())
	}
	return c.TCPConn.Write(b)
}

// CloseWrite says that nothing more will be sent: there is more to come than was
// taken. net/http then waits for the other side to read what was sent, and this is
// the first to make room meanwhile.
func (c *conn) CloseWrite() error {
	c.gate.outlived(c)
	return c.TCPConn.CloseWrite()
}

// SetWriteDeadline with a time that has passed says what CloseWrite does: it is
// what TLS does when net/http closes its side.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		c.gate.outlived(c)
	}
	return c.TCPConn.SetWriteDeadline(t)
}
