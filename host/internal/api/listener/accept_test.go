package listener_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

// openSocket opens a listener for a protocol without HTTP.
func openSocket(t *testing.T, limits listener.Limits, certs *listener.Certificates) *listener.Listener {
	t.Helper()
	l, err := listener.Open(t.Context(), "127.0.0.1:0", limits, certs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// accept returns both ends of a new connection.
func accept(t *testing.T, l *listener.Listener) (here, there net.Conn) {
	t.Helper()
	there = dialFrom(t, "127.0.0.1", l)
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	return here, there
}

// A connection that is marked idle makes room for another, a busy one does not.
func TestAcceptMarked(t *testing.T) {
	t.Parallel()
	l := openSocket(t, listener.Limits{Connections: 2}, nil)
	busy, busyClient := accept(t, l)
	listener.Mark(busy, true)
	idle, idleClient := accept(t, l)
	listener.Mark(idle, true)
	listener.Mark(idle, false)
	third, thirdClient := accept(t, l)
	listener.Mark(third, true)
	gone(t, idleClient)
	if got := l.Counts(); got.Open != 2 || got.Evicted != 1 {
		t.Errorf("%+v, want 2 open and 1 evicted", got)
	}
	for here, there := range map[net.Conn]net.Conn{busy: busyClient, third: thirdClient} {
		if _, err := io.WriteString(here, "x"); err != nil {
			t.Error(err)
		}
		if n, err := there.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("a busy connection reads %d, %v", n, err)
		}
	}
	listener.Mark(idle, true) // it is closed, which changes nothing
	if got := l.Counts().Open; got != 2 {
		t.Errorf("%d open", got)
	}
}

// A connection within the limits of its network is accepted, another is not.
func TestAcceptPerAddress(t *testing.T) {
	t.Parallel()
	l := openSocket(t, listener.Limits{PerAddress: 1}, nil)
	first, _ := accept(t, l)
	listener.Mark(first, false)
	extra := dialFrom(t, "127.0.0.1", l)
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept() // it refuses the second and waits for a third
		done <- err
	}()
	gone(t, extra)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("the second connection was accepted")
	}
}

// With certificates a socket speaks TLS, and marks reach the connection below it.
func TestAcceptTLS(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(1, time.Now().Add(time.Hour)))
	l := openSocket(t, listener.Limits{Connections: 1}, d.load())
	here, there := accept(t, l)
	shaken := make(chan error, 1)
	go func() { shaken <- here.(*tls.Conn).HandshakeContext(t.Context()) }()
	client := tls.Client(there, &tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1"})
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	listener.Mark(here, true)
	listener.Mark(here, false)
	accept(t, l)
	if got := l.Counts(); got.Evicted != 1 {
		t.Errorf("%+v, want 1 evicted", got)
	}
}
