package listen

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
	// Connections is how many may be open.
	Connections int
	// PerAddress is how many may be open from one [Network].
	PerAddress int
	// Proxies speak for many callers, so that PerAddress is not for them.
	Proxies []netip.Prefix
}

// gate lets connections in. One that is too many from its address is closed
// before a byte is read. Where all are taken, one that has no request makes room,
// and the next has to wait until there is one that had its moment: whoever only
// holds connections is pushed out by his own next ones, and whoever has something
// to ask gets to ask it. Meanwhile nobody comes in from where somebody just sent more
// than is taken, see [offenders].
type gate struct {
	*net.TCPListener
	limits Limits

	mu   sync.Mutex
	open int
	from map[netip.Prefix]int
	// fresh holds the *conn that have not said anything whole yet, greeted those
	// that were answered in a handshake and have not asked yet, idle those between
	// two requests and after the last; longest first.
	fresh, greeted, idle *list.List
	offenders            offenders
	refused              int64
	evicted              int64
}

func newGate(l *net.TCPListener, limits Limits) *gate {
	return &gate{TCPListener: l, limits: limits, from: map[netip.Prefix]int{}, fresh: list.New(), greeted: list.New(), idle: list.New()}
}

// moment is how long a connection may say nothing before it has to make room.
const moment = 5 * time.Millisecond

// handshakeTime is how long one that was greeted counts as at it: a caller far
// away needs most of it for one way there and back.
const handshakeTime = time.Second

// Accept returns the next connection that there is room for.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptTCP()
		if err != nil {
			return nil, err
		}
		from, now := g.counted(c.RemoteAddr()), time.Now()
		if g.barred(from, now) {
			cut(c)
			continue
		}
		time.Sleep(g.rush(now))
		in, out := g.admit(c, from, time.Now())
		cut(out)
		if in != nil {
			return in, nil
		}
		cut(c)
	}
}

// cut ends a connection at no further cost: nothing is sent that the other side
// would have to take.
func cut(c *net.TCPConn) {
	if c != nil {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// next is the one that has to make room, nil if none can. The caller holds the
// lock. It is one that is done, or of the larger crowd, so that neither those who
// ask nothing nor those who have asked once push out the others.
func (g *gate) next(now time.Time) *conn {
	crowd := g.idle
	if g.fresh.Len()+g.greeted.Len() >= g.idle.Len() && !done(g.idle.Front()) {
		crowd = g.silent(now)
	}
	if first := crowd.Front(); first != nil {
		return first.Value.(*conn)
	}
	return nil
}

// silent is the crowd that makes room of those who have not asked anything. Those
// at a handshake stay, unless they are more than those who have not begun one.
func (g *gate) silent(now time.Time) *list.List {
	slow := g.greeted.Front()
	if slow != nil && (g.greeted.Len() > g.fresh.Len() || now.Sub(slow.Value.(*conn).since) >= handshakeTime) {
		return g.greeted
	}
	return g.fresh
}

// done reports whether a connection is only kept until its last answer is read.
func done(e *list.Element) bool { return e != nil && e.Value.(*conn).since.IsZero() }

func (g *gate) full() bool { return g.limits.Connections > 0 && g.open >= g.limits.Connections }

// rush is how long the one that has to make room still has. Those who knock
// meanwhile are kept by the system.
func (g *gate) rush(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.full() {
		return 0
	}
	if c := g.next(now); c != nil {
		return moment - now.Sub(c.since)
	}
	return 0
}

// barred refuses one from an offender's network where all are taken, at less cost
// than letting it in to make room again.
func (g *gate) barred(from netip.Prefix, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.full() || !g.offenders.has(from, now) {
		return false
	}
	g.refused++
	return true
}

// admit counts a connection in, or returns nil when there is no room. out is the
// one that made room, if one had to.
func (g *gate) admit(c *net.TCPConn, from netip.Prefix, now time.Time) (in *conn, out *net.TCPConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if from.IsValid() && g.from[from] >= g.limits.PerAddress {
		g.refused++
		return nil, nil
	}
	if g.full() {
		old := g.next(now)
		if old == nil {
			g.refused++
			return nil, nil
		}
		g.evicted++
		if done(old.place) {
			g.offenders.add(old.from, now)
		}
		g.forget(old)
		out = old.TCPConn
	}
	in = &conn{TCPConn: c, gate: g, from: from, among: g.fresh, since: now}
	in.place = g.fresh.PushBack(in)
	g.open++
	if from.IsValid() {
		g.from[from]++
	}
	return in, out
}

// counted is the network that a connection counts for, if it counts for one.
func (g *gate) counted(remote net.Addr) (from netip.Prefix) {
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

// forget counts a connection out. The caller holds the lock.
func (g *gate) forget(c *conn) {
	if c.gone {
		return
	}
	c.gone = true
	g.open--
	g.leave(c)
	if !c.from.IsValid() {
		return
	}
	if g.from[c.from]--; g.from[c.from] == 0 {
		delete(g.from, c.from)
	}
}

// leave takes a connection out of those that wait. The caller holds the lock.
func (g *gate) leave(c *conn) {
	if c.place != nil {
		c.among.Remove(c.place)
		c.place, c.among = nil, nil
	}
}

// greet puts one who was answered in a handshake among its like.
func (g *gate) greet(c *conn, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.gone || c.among != g.fresh {
		return
	}
	g.leave(c)
	c.place, c.among, c.since = g.greeted.PushBack(c), g.greeted, now
}

// outlived puts a connection on which all is said before those that wait.
func (g *gate) outlived(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !c.gone && c.place == nil {
		c.place, c.among, c.since = g.idle.PushFront(c), g.idle, time.Time{}
	}
}

// note hears from net/http what a connection is about.
func (g *gate) note(nc net.Conn, state http.ConnState) {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = over.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case c.gone:
	case state == http.StateIdle && c.place == nil:
		c.place, c.among, c.since = g.idle.PushBack(c), g.idle, time.Now()
	case state == http.StateActive:
		g.leave(c)
	}
}

// Counts of the connections of a listener.
type Counts struct {
	Open int
	// Refused were one too many, Evicted had to make room for another.
	Refused, Evicted int64
}

func (g *gate) counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Counts{g.open, g.refused, g.evicted}
}

// errNotTCP is what a listener of another kind is answered with.
var errNotTCP = errors.New("not a TCP address")
