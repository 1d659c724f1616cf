package listen_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"skep/host/internal/listen"
)

// crowd is full of connections that have said nothing, 1 ms after each other.
func crowd(room int) (c *listen.Crowd, now time.Time) {
	c, now = listen.NewCrowd(room), time.Unix(1e9, 0)
	for i := range room {
		now = now.Add(time.Millisecond)
		c.Enter(fmt.Sprint("silent ", i), now)
	}
	return c, now
}

// Whoever is at a handshake has a second, however many come that say nothing.
func TestHandshakeOutlivesFlood(t *testing.T) {
	t.Parallel()
	c, now := crowd(100)
	c.Enter("caller", now)
	c.Greet("caller", now)
	for i := range 10_000 {
		c.Enter(fmt.Sprint("flood ", i), now.Add(time.Duration(i)*90*time.Microsecond))
	}
	if !c.Inside("caller") || c.Inside("flood 0") {
		t.Error("the flood pushed out who was at a handshake")
	}
	c.Enter("last", now.Add(999*time.Millisecond))
	if !c.Inside("caller") {
		t.Error("a second is not over yet")
	}
	c.Enter("after", now.Add(time.Second))
	if c.Inside("caller") {
		t.Error("whoever does not end a handshake keeps his place")
	}
}

// Where nearly all are at a handshake, the oldest of them makes room: a flood of
// begun ones does not keep out those who come.
func TestHandshakesMakeRoom(t *testing.T) {
	t.Parallel()
	c, now := crowd(100)
	for i := range 100 {
		c.Greet(fmt.Sprint("silent ", i), now)
	}
	c.Enter("caller", now)
	if !c.Inside("caller") || c.Inside("silent 0") || !c.Inside("silent 1") {
		t.Error("the oldest handshake does not make room")
	}
	c.Enter("next", now)
	if !c.Inside("caller") || c.Inside("silent 1") {
		t.Error("the newcomer goes before the many")
	}
}

// Both that have not asked together are one crowd beside those who have.
func TestHandshakesAndIdle(t *testing.T) {
	t.Parallel()
	c, now := crowd(100)
	for i := range 40 {
		c.Answer(fmt.Sprint("silent ", i))
	}
	for i := 40; i < 70; i++ {
		c.Greet(fmt.Sprint("silent ", i), now)
	}
	for i := range 1000 {
		c.Enter(fmt.Sprint("flood ", i), now)
	}
	for i := range 70 {
		if name := fmt.Sprint("silent ", i); !c.Inside(name) {
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
	a, d := newAuthority(t), newDesk(t)
	d.put(a.issue(2, nextYear()))
	l := open(t, listen.Limits{}, d.load(), hello)
	raw := half{dialFrom(t, "127.0.0.2", l), make(chan struct{})}
	c := tls.Client(raw, &tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1"})
	shaken := make(chan error, 1)
	go func() { shaken <- c.HandshakeContext(t.Context()) }()
	until(t, "the host has answered", func() bool { return l.Greeted() == 1 })
	close(raw.through)
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	ask(t, c)
	until(t, "it has asked", func() bool { return l.Greeted() == 0 })
	plain := open(t, listen.Limits{}, nil, hello)
	silent, asking := dialFrom(t, "127.0.0.2", plain), dialFrom(t, "127.0.0.2", plain)
	ask(t, asking)
	if _, err := io.WriteString(silent, "GET / HT"); err != nil {
		t.Fatal(err)
	}
	if n := plain.Greeted(); n != 0 {
		t.Errorf("%d are at a handshake without TLS", n)
	}
}
