package listener

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits of the connections of one listener. Zero means no limit.
type Limits struct {
	// Connections bounds the open connections.
	Connections int
	// PerAddress bounds the open connections of one [Network].
	PerAddress int
	// Proxies are exempt from PerAddress, because they serve many clients.
	Proxies []netip.Prefix
}

// limitListener limits the accepted connections. One beyond the limit of its
// network is closed before a byte is read. When all places are taken, a
// connection without a request is evicted, and the next is accepted only after a
// connection had its minimum time. So a client that only holds connections evicts
// its own, and a client with a request gets to send it. While all places are
// taken, blocked networks are refused; see [blocklist].
type limitListener struct {
	*net.TCPListener
	limits Limits

	mu         sync.Mutex
	open       int
	perNetwork map[netip.Prefix]int
	// unasked holds the *conn before their first complete message, handshaking
	// those that were answered in a TLS handshake and have sent no request yet,
	// idle those between two requests and after the last; longest first.
	unasked, handshaking, idle *list.List
	blocklist                  blocklist
	refused                    int64
	evicted                    int64
}

func newLimitListener(l *net.TCPListener, limits Limits) *limitListener {
	return &limitListener{TCPListener: l, limits: limits, perNetwork: map[netip.Prefix]int{}, unasked: list.New(), handshaking: list.New(), idle: list.New()}
}

// minSilence is how long a connection may be silent before it can be evicted.
const minSilence = 5 * time.Millisecond

// handshakeTime is how long a connection counts as handshaking: a distant client
// needs most of it for one round trip.
const handshakeTime = time.Second

// Accept returns the next connection within the limits.
func (g *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptTCP()
		if err != nil {
			return nil, err
		}
		from, now := g.countedNetwork(c.RemoteAddr()), time.Now()
		if g.blocked(from, now) {
			resetConn(c)
			continue
		}
		time.Sleep(g.evictionDelay(now))
		in, out := g.admit(c, from, time.Now())
		resetConn(out)
		if in != nil {
			return in, nil
		}
		resetConn(c)
	}
}

// resetConn closes a connection with a reset, so that no data is pending.
func resetConn(c *net.TCPConn) {
	if c != nil {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// evictionCandidate returns the connection to evict, nil if there is none. The
// caller holds the lock. It is a lingering one, or the first of the larger list,
// so that neither connections without a request nor idle ones evict all of the
// other kind.
func (g *limitListener) evictionCandidate(now time.Time) *conn {
	candidates := g.idle
	if g.unasked.Len()+g.handshaking.Len() >= g.idle.Len() && !isLingering(g.idle.Front()) {
		candidates = g.unaskedList(now)
	}
	if first := candidates.Front(); first != nil {
		return first.Value.(*conn)
	}
	return nil
}

// unaskedList returns the list to evict from among connections that sent no
// request. Handshaking ones are spared unless they outnumber the others or are
// too old.
func (g *limitListener) unaskedList(now time.Time) *list.List {
	slow := g.handshaking.Front()
	if slow != nil && (g.handshaking.Len() > g.unasked.Len() || now.Sub(slow.Value.(*conn).since) >= handshakeTime) {
		return g.handshaking
	}
	return g.unasked
}

// isLingering reports whether a connection is only open until its last answer is
// read.
func isLingering(e *list.Element) bool { return e != nil && e.Value.(*conn).since.IsZero() }

func (g *limitListener) full() bool {
	return g.limits.Connections > 0 && g.open >= g.limits.Connections
}

// evictionDelay is how long the candidate still has. Meanwhile the kernel queues
// new connections.
func (g *limitListener) evictionDelay(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.full() {
		return 0
	}
	if c := g.evictionCandidate(now); c != nil {
		return minSilence - now.Sub(c.since)
	}
	return 0
}

// blocked refuses a connection of a blocked network when all places are taken.
// That costs less than accepting it and evicting again.
func (g *limitListener) blocked(from netip.Prefix, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.full() || !g.blocklist.contains(from, now) {
		return false
	}
	g.refused++
	return true
}

// admit counts a connection in, or returns nil when there is no place. out is the
// evicted connection, if any.
func (g *limitListener) admit(c *net.TCPConn, from netip.Prefix, now time.Time) (in *conn, out *net.TCPConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if from.IsValid() && g.perNetwork[from] >= g.limits.PerAddress {
		g.refused++
		return nil, nil
	}
	if g.full() {
		old := g.evictionCandidate(now)
		if old == nil {
			g.refused++
			return nil, nil
		}
		g.evicted++
		if isLingering(old.element) {
			g.blocklist.add(old.network, now)
		}
		g.removeLocked(old)
		out = old.TCPConn
	}
	in = &conn{TCPConn: c, limit: g, network: from, queue: g.unasked, since: now}
	in.element = g.unasked.PushBack(in)
	g.open++
	if from.IsValid() {
		g.perNetwork[from]++
	}
	return in, out
}

// countedNetwork returns the network of a connection, the invalid prefix when
// PerAddress does not apply.
func (g *limitListener) countedNetwork(remote net.Addr) (from netip.Prefix) {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok || g.limits.PerAddress <= 0 {
		return from
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if slices.ContainsFunc(g.limits.Proxies, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return from
	}
	return Network(ip)
}

// removeLocked counts a connection out. The caller holds the lock.
func (g *limitListener) removeLocked(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	g.open--
	g.unlist(c)
	if !c.network.IsValid() {
		return
	}
	if g.perNetwork[c.network]--; g.perNetwork[c.network] == 0 {
		delete(g.perNetwork, c.network)
	}
}

// unlist removes a connection from its list. The caller holds the lock.
func (g *limitListener) unlist(c *conn) {
	if c.element != nil {
		c.queue.Remove(c.element)
		c.element, c.queue = nil, nil
	}
}

// markHandshaking moves a connection that was answered in a handshake to its
// list.
func (g *limitListener) markHandshaking(c *conn, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.closed || c.queue != g.unasked {
		return
	}
	g.unlist(c)
	c.element, c.queue, c.since = g.handshaking.PushBack(c), g.handshaking, now
}

// markLingering puts a connection in front of the idle ones.
func (g *limitListener) markLingering(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !c.closed && c.element == nil {
		c.element, c.queue, c.since = g.idle.PushFront(c), g.idle, time.Time{}
	}
}

// trackState follows net/http's state of a connection.
func trackState(nc net.Conn, state http.ConnState) {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = over.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	g := c.limit
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case c.closed:
	case state == http.StateIdle && c.element == nil:
		c.element, c.queue, c.since = g.idle.PushBack(c), g.idle, time.Now()
	case state == http.StateActive:
		g.unlist(c)
	}
}

// Counts of the connections of a listener.
type Counts struct {
	Open int
	// Refused counts connections beyond a limit, Evicted those that made room for
	// another.
	Refused, Evicted int64
}

func (g *limitListener) counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Counts{g.open, g.refused, g.evicted}
}

// errNotTCP is returned for a listener of another kind.
var errNotTCP = errors.New("not a TCP address")
