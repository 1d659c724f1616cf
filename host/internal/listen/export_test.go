package listen

import (
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Accept takes the next connection as net/http does.
func (l *Listener) Accept() (net.Conn, error) { return l.gate.Accept() }

// Asked says that a request has come over a connection.
func (l *Listener) Asked(c net.Conn) { l.gate.note(c, http.StateActive) }

// Offenders lets tests choose the time.
type Offenders struct{ offenders }

func (o *Offenders) Add(from netip.Prefix, now time.Time)      { o.add(from, now) }
func (o *Offenders) Has(from netip.Prefix, now time.Time) bool { return o.has(from, now) }

// Terms of offenders.
const (
	Term          = term
	MostOffenders = mostOffenders
)

// Waiting is how many connections have no request.
func (l *Listener) Waiting() int {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	return l.gate.fresh.Len() + l.gate.greeted.Len() + l.gate.idle.Len()
}

// Addresses is how many networks connections are counted of.
func (l *Listener) Addresses() int {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	return len(l.gate.from)
}

// Greeted is how many connections are at a handshake.
func (l *Listener) Greeted() int {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	return l.gate.greeted.Len()
}

// Crowd is a gate without a socket, for tests that choose the time.
type Crowd struct {
	gate *gate
	in   map[string]*conn
}

// NewCrowd makes one with room for some.
func NewCrowd(room int) *Crowd {
	return &Crowd{newGate(nil, Limits{Connections: room}), map[string]*conn{}}
}

// Enter lets somebody in, and pushes out whose turn it is.
func (c *Crowd) Enter(name string, now time.Time) {
	in, _ := c.gate.admit(nil, netip.Prefix{}, now)
	c.in[name] = in
}

// Greet answers somebody in a handshake.
func (c *Crowd) Greet(name string, now time.Time) { c.gate.greet(c.in[name], now) }

// Answer answers somebody's request.
func (c *Crowd) Answer(name string) {
	c.gate.note(c.in[name], http.StateActive)
	c.gate.note(c.in[name], http.StateIdle)
}

// Inside reports whether somebody still is.
func (c *Crowd) Inside(name string) bool { return !c.in[name].gone }
