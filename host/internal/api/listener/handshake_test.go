package listener_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

// fullQueue returns a full queue of silent connections, 1 ms apart.
func fullQueue(room int) (c *listener.ConnQueue, now time.Time) {
	c, now = listener.NewConnQueue(room), time.Unix(1e9, 0)
	for i := range room {
		now = now.Add(time.Millisecond)
		c.Admit(fmt.Sprint("silent ", i), now)
	}
	return c, now
}

// A handshaking connection has a second, however many silent ones come.
func TestHandshakeOutlivesFlood(t *testing.T) {
	t.Parallel()
	c, now := fullQueue(100)
	c.Admit("caller", now)
	c.MarkHandshaking("caller", now)
	for i := range 10_000 {
		c.Admit(fmt.Sprint("flood ", i), now.Add(time.Duration(i)*90*time.Microsecond))
	}
	if !c.IsOpen("caller") || c.IsOpen("flood 0") {
		t.Error("the flood pushed out who was at a handshake")
	}
	c.Admit("last", now.Add(999*time.Millisecond))
	if !c.IsOpen("caller") {
		t.Error("a second is not over yet")
	}
	c.Admit("after", now.Add(time.Second))
	if c.IsOpen("caller") {
		t.Error("whoever does not end a handshake keeps his place")
	}
}

// Where nearly all are at a handshake, the oldest of them makes room: a flood of
// begun ones does not keep out those who come.
func TestHandshakesMakeRoom(t *testing.T) {
	t.Parallel()
	c, now := fullQueue(100)
	for i := range 100 {
		c.MarkHandshaking(fmt.Sprint("silent ", i), now)
	}
	c.Admit("caller", now)
	if !c.IsOpen("caller") || c.IsOpen("silent 0") || !c.IsOpen("silent 1") {
		t.Error("the oldest handshake does not make room")
	}
	c.Admit("next", now)
	if !c.IsOpen("caller") || c.IsOpen("silent 1") {
		t.Error("the newcomer goes before the many")
	}
}

// Connections without a request count together against the idle ones.
func TestHandshakesAndIdle(t *testing.T) {
	t.Parallel()
	c, now := fullQueue(100)
	for i := range 40 {
		c.Answer(fmt.Sprint("silent ", i))
	}
	for i := 40; i < 70; i++ {
		c.MarkHandshaking(fmt.Sprint("silent ", i), now)
	}
	for i := range 1000 {
		c.Admit(fmt.Sprint("flood ", i), now)
	}
	for i := range 70 {
		if name := fmt.Sprint("silent ", i); !c.IsOpen(name) {
			t.Errorf("the flood pushed out %s", name)
		}
	}
}

// half is a connection over which a test lets through what the host sends.
type half struct {
	net.Conn
	through chan struct{}
}

func (h half) Read(b []byte) (int, error) {
	<-h.through
	return h.Conn.Read(b)
}

// A real handshake is taken for one.
func TestHandshakeIsSeen(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	l := open(t, listener.Limits{}, d.load(), hello)
	raw := half{dialFrom(t, "127.0.0.2", l), make(chan struct{})}
	c := tls.Client(raw, &tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1"})
	shaken := make(chan error, 1)
	go func() { shaken <- c.HandshakeContext(t.Context()) }()
	until(t, "the host has answered", func() bool { return l.Handshaking() == 1 })
	close(raw.through)
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	ask(t, c)
	until(t, "it has asked", func() bool { return l.Handshaking() == 0 })
	plain := open(t, listener.Limits{}, nil, hello)
	silent, asking := dialFrom(t, "127.0.0.2", plain), dialFrom(t, "127.0.0.2", plain)
	ask(t, asking)
	if _, err := io.WriteString(silent, "GET / HT"); err != nil {
		t.Fatal(err)
	}
	if n := plain.Handshaking(); n != 0 {
		t.Errorf("%d are at a handshake without TLS", n)
	}
}
