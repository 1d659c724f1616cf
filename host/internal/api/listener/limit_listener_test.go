package listener_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := listener.Network(netip.MustParseAddr(ip)).String(); got != want {
			t.Errorf("Network(%s) = %s, want %s", ip, got, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	l := open(t, listener.Limits{}, nil, hello)
	if _, err := listener.Open(t.Context(), l.Addr().String(), listener.Limits{}, nil); err == nil {
		t.Error("a port in use was opened")
	}
	if l.Secure() || !listener.Loopback(l.Addr()) || listener.Loopback(&net.TCPAddr{IP: net.IPv4zero}) {
		t.Error("a plain listener on loopback is taken for another")
	}
	unused, err := listener.Open(t.Context(), "127.0.0.1:0", listener.Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := unused.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := unused.Serve(&http.Server{}); err == nil {
		t.Error("a closed listener serves")
	}
}

// ask sends a request and reads the answer.
func ask(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(rsp.Body); err != nil || string(body) != "hello" {
		t.Fatalf("%q, %v", body, err)
	}
}

// gone waits until the host has closed a connection.
func gone(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a connection that is one too many reads %d, %v", n, err)
	} else if to, ok := err.(net.Error); ok && to.Timeout() {
		t.Errorf("a connection that is one too many stays open")
	}
}

// turnedAway makes sure that one more connection from an address is not let in.
func turnedAway(t *testing.T, from string, l *listener.Listener) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if errors.Is(err, syscall.ECONNRESET) {
		return // it was cut before it was there
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	gone(t, c)
}

func TestPerAddress(t *testing.T) {
	t.Parallel()
	l := open(t, listener.Limits{PerAddress: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.4/32")}}, nil, hello)
	a, b := dialFrom(t, "127.0.0.2", l), dialFrom(t, "127.0.0.2", l)
	ask(t, a)
	ask(t, b)
	turnedAway(t, "127.0.0.2", l)
	if n := l.Counts(); n.Refused != 1 || n.Open != 2 {
		t.Errorf("%+v", n)
	}
	ask(t, a)
	ask(t, dialFrom(t, "127.0.0.3", l))
	for range 5 {
		ask(t, dialFrom(t, "127.0.0.4", l))
	}
	_ = b.Close()
	until(t, "a closed connection makes room", func() bool { return l.Counts().Open == 7 })
	ask(t, dialFrom(t, "127.0.0.2", l))
}

// Connections that are only held open are evicted for ones with requests.
func TestFullEvictsWhoWaitsLongest(t *testing.T) {
	t.Parallel()
	held, free := make(chan struct{}), make(chan struct{})
	l := open(t, listener.Limits{Connections: 3}, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			close(held)
			<-free
		}
		hello(w, r)
	}))
	var done sync.WaitGroup
	defer done.Wait()
	defer close(free)
	busy := dialFrom(t, "127.0.0.2", l)
	if _, err := io.WriteString(busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-held
	until(t, "it is busy", func() bool { return l.Waiting() == 0 && l.Counts().Open == 1 })
	first := dialFrom(t, "127.0.0.2", l)
	until(t, "two are open", func() bool { return l.Counts().Open == 2 })
	idle := dialFrom(t, "127.0.0.2", l)
	ask(t, idle)
	until(t, "it waits again", func() bool { return l.Waiting() == 2 })
	next := dialFrom(t, "127.0.0.2", l)
	gone(t, first)
	ask(t, next)
	until(t, "both wait", func() bool { return l.Waiting() == 2 })
	last := dialFrom(t, "127.0.0.2", l)
	gone(t, idle)
	ask(t, last)
	if n := l.Counts(); n.Evicted != 2 || n.Refused != 0 || n.Open != 3 {
		t.Errorf("%+v", n)
	}
	done.Go(func() {
		if _, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil {
			t.Error("the one with a request was hurt:", err)
		}
	})
}

func TestFullOfRequestsRefusesTheNewest(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	l := open(t, listener.Limits{Connections: 2}, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-free
		hello(w, r)
	}))
	var busy []net.Conn
	for i := range 2 {
		c := dialFrom(t, "127.0.0.2", l)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		busy = append(busy, c)
		until(t, "it is busy", func() bool { return l.Waiting() == 0 && l.Counts().Open == i+1 })
	}
	turnedAway(t, "127.0.0.3", l)
	close(free)
	for _, c := range busy {
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Error(err)
		}
	}
	if n := l.Counts(); n.Refused != 1 || n.Evicted != 0 {
		t.Errorf("%+v", n)
	}
}

// A connection that is only kept until its last answer is read makes room first.
func TestFullEvictsWhoIsDone(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	for name, certs := range map[string]*listener.Certificates{"in the clear": nil, "TLS": d.load()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t, listener.Limits{Connections: 2}, certs, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.Header().Set("Connection", "close")
				}
				hello(w, r)
			}))
			dial := func() net.Conn {
				c := dialFrom(t, "127.0.0.2", l)
				if certs == nil {
					return c
				}
				return tls.Client(c, &tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1"})
			}
			idle := dial()
			ask(t, idle)
			// A body that is not read: the answer must not be lost to a reset.
			if _, err := io.WriteString(dial(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"); err != nil {
				t.Fatal(err)
			}
			until(t, "it is done", func() bool { return l.Waiting() == 2 })
			ask(t, dial())
			ask(t, idle)
			if n := l.Counts(); n.Evicted > 1 || n.Refused != 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

func TestGateHammer(t *testing.T) {
	t.Parallel()
	l := open(t, listener.Limits{Connections: 8, PerAddress: 5}, nil, hello)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%4+1))}
			for range 50 {
				c, err := (&net.Dialer{LocalAddr: from}).DialContext(t.Context(), "tcp", l.Addr().String())
				if err != nil {
					continue // it was cut before it was there
				}
				_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
				if n := l.Counts().Open; n > 8 {
					t.Errorf("%d are open", n)
				}
			}
		})
	}
	all.Wait()
	until(t, "all are closed", func() bool { return l.Counts().Open == 0 && l.Waiting() == 0 && l.Addresses() == 0 })
}
