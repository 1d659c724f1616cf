package listener_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

// door is a listener whose connections a test takes by hand.
type door struct {
	t *testing.T
	l *listener.Listener
}

func newDoor(t *testing.T, limits listener.Limits) door {
	l, err := listener.Open(t.Context(), "127.0.0.1:0", limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return door{t, l}
}

// knock opens a connection, which may be cut before it is there.
func (d door) knock(from string) {
	d.t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(d.t.Context(), "tcp", d.l.Addr().String())
	if err == nil {
		d.t.Cleanup(func() { _ = c.Close() })
	}
}

// enters takes the next connection, which has to be the one from an address.
func (d door) enters(from string) net.Conn {
	d.t.Helper()
	c, err := d.l.Accept()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.Close() })
	if got, _, _ := net.SplitHostPort(c.RemoteAddr().String()); got != from {
		d.t.Fatalf("%s comes in, want %s", got, from)
	}
	return c
}

// offend fills the door with two others after one from an address was sent away.
func (d door) offend(from string, end func(net.Conn) error) {
	d.t.Helper()
	d.knock(from)
	offender := d.enters(from)
	listener.Mark(offender, true)
	if err := end(offender); err != nil {
		d.t.Fatal(err)
	}
	for _, other := range []string{"127.0.0.3", "127.0.0.4"} {
		d.knock(other)
		d.enters(other)
	}
	if n := d.l.Counts(); n.Evicted != 1 || n.Open != 2 {
		d.t.Fatalf("%+v", n)
	}
}

// endings are how net/http closes its side: in clear text, and under TLS.
var endings = map[string]func(net.Conn) error{
	"in the clear": func(c net.Conn) error { return c.(interface{ CloseWrite() error }).CloseWrite() },
	"TLS":          func(c net.Conn) error { return c.SetWriteDeadline(time.Now()) },
}

// The network of an evicted lingering connection is blocked while all places are
// taken, and no other network is.
func TestOffenderStaysOut(t *testing.T) {
	t.Parallel()
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoor(t, listener.Limits{Connections: 2, PerAddress: 10})
			d.offend("127.0.0.2", end)
			d.knock("127.0.0.2")
			d.knock("127.0.0.5")
			last := d.enters("127.0.0.5")
			if n := d.l.Counts(); n.Refused != 1 || n.Open != 2 {
				t.Errorf("%+v", n)
			}
			_ = last.Close()
			d.knock("127.0.0.2")
			d.enters("127.0.0.2")
		})
	}
}

// Proxies speak for many, and so does an address that has no limit.
func TestWhoNeverStaysOut(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]listener.Limits{
		"a proxy":       {Connections: 2, PerAddress: 10, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}},
		"without limit": {Connections: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoor(t, limits)
			d.offend("127.0.0.2", endings["in the clear"])
			d.knock("127.0.0.2")
			d.enters("127.0.0.2")
		})
	}
}

// A connection that ends as it should is no offence.
func TestNoOffence(t *testing.T) {
	t.Parallel()
	d := newDoor(t, listener.Limits{Connections: 1, PerAddress: 10})
	d.knock("127.0.0.2")
	silent := d.enters("127.0.0.2")
	if err := silent.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"127.0.0.3", "127.0.0.2", "127.0.0.3"} {
		d.knock(from)
		d.enters(from)
	}
}

func TestOffendersAreForgotten(t *testing.T) {
	t.Parallel()
	var o listener.Blocklist
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	now := time.Unix(1e9, 0)
	o.Add(one, now)
	o.Add(netip.Prefix{}, now)
	if !o.Has(one, now) || o.Has(other, now) || o.Has(netip.Prefix{}, now) {
		t.Error("another than the one is remembered")
	}
	now = now.Add(listener.BlockTerm)
	o.Add(other, now)
	if !o.Has(one, now) || !o.Has(other, now) {
		t.Error("one is forgotten early")
	}
	now = now.Add(listener.BlockTerm)
	if o.Has(one, now) || !o.Has(other, now) {
		t.Error("after two terms one is remembered, or the other forgotten")
	}
	if o.Has(other, now.Add(2*listener.BlockTerm)) {
		t.Error("the other is remembered for good")
	}
}

func TestOffendersAreBounded(t *testing.T) {
	t.Parallel()
	var o listener.Blocklist
	now := time.Unix(1e9, 0)
	network := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
	}
	for i := range listener.MaxBlocked + 1 {
		o.Add(network(i), now)
	}
	if !o.Has(network(listener.MaxBlocked-1), now) || o.Has(network(listener.MaxBlocked), now) {
		t.Error("the bound is elsewhere")
	}
}
