package listener

import (
	"net/http"
	"net/netip"
	"time"
)

// Blocklist lets tests choose the time.
type Blocklist struct{ blocklist }

func (o *Blocklist) Add(from netip.Prefix, now time.Time)      { o.add(from, now) }
func (o *Blocklist) Has(from netip.Prefix, now time.Time) bool { return o.contains(from, now) }

// Terms of offenders.
const (
	BlockTerm  = blockTerm
	MaxBlocked = maxBlocked
)

// Waiting is how many connections have no request.
func (l *Listener) Waiting() int {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	return l.limit.unasked.Len() + l.limit.handshaking.Len() + l.limit.idle.Len()
}

// Addresses is how many networks connections are counted of.
func (l *Listener) Addresses() int {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	return len(l.limit.perNetwork)
}

// Handshaking is how many connections are at a handshake.
func (l *Listener) Handshaking() int {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	return l.limit.handshaking.Len()
}

// ConnQueue is a limitListener without a socket, for tests that set the time.
type ConnQueue struct {
	limit *limitListener
	in    map[string]*conn
}

// NewConnQueue makes one with room for some.
func NewConnQueue(room int) *ConnQueue {
	return &ConnQueue{newLimitListener(nil, Limits{Connections: room}), map[string]*conn{}}
}

// Admit admits a connection by name, and evicts one if the queue is full.
func (c *ConnQueue) Admit(name string, now time.Time) {
	in, _ := c.limit.admit(nil, netip.Prefix{}, now)
	c.in[name] = in
}

// MarkHandshaking marks a connection as handshaking.
func (c *ConnQueue) MarkHandshaking(name string, now time.Time) {
	c.limit.markHandshaking(c.in[name], now)
}

// Answer begins and ends a request on a connection.
func (c *ConnQueue) Answer(name string) {
	trackState(c.in[name], http.StateActive)
	trackState(c.in[name], http.StateIdle)
}

// IsOpen reports whether a connection was not evicted.
func (c *ConnQueue) IsOpen(name string) bool { return !c.in[name].closed }
