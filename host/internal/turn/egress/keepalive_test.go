package egress_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// keeps returns a client with kept connections; the test closes it.
func (w *fakeNet) keeps(change ...func(*egress.Options)) *egress.Client {
	c := w.client(append(change, func(o *egress.Options) { o.KeepAlive.MaxIdlePerHost = 2 })...)
	w.t.Cleanup(c.Close)
	return c
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// Consecutive requests to one host use one connection.
func TestKeep(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("www.example.com", apiAddr)
	w.serveTLS(apiAddr+":443", hello)
	w.serve(apiAddr+":80", hello)
	c, p := w.keeps(), granted(t, "https://www.example.com", "http://www.example.com")
	for _, url := range []string{"https://www.example.com/a", "https://www.example.com/b", "http://www.example.com/a", "http://www.example.com/b"} {
		got, err := c.Fetch(t.Context(), p, "", get(url))
		answered(t, got, err, 200, "hello")
	}
	if len(w.dialled) != 2 {
		t.Errorf("dialled %v", w.dialled)
	}
	c.Close()
	got, err := c.Fetch(t.Context(), p, "", get("https://www.example.com/"))
	answered(t, got, err, 200, "hello")
	if len(w.dialled) != 3 {
		t.Errorf("dialled %v after Close", w.dialled)
	}
}

// An idle connection is closed after IdleTimeout.
func TestKeepFor(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	closed := make(chan struct{})
	w.start(apiAddr+":80", hello, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(closed)
			}
		}
		s.Start()
	})
	c := w.keeps(func(o *egress.Options) { o.KeepAlive.IdleTimeout = time.Millisecond })
	got, err := c.Fetch(t.Context(), granted(t, "http://api.test"), "", get("http://api.test/"))
	answered(t, got, err, 200, "hello")
	<-closed
}

// An address is checked each time a connection is opened: a name that later resolves to a
// private address is refused then, unless the policy trusts the name.
func TestKeepRebinding(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr, "10.0.0.1")
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		hello(w, r)
	})
	w.serve("10.0.0.1:80", hello)
	c, p := w.keeps(), granted(t, "http://api.test")
	got, err := c.Fetch(t.Context(), p, "", get("http://api.test/"))
	answered(t, got, err, 200, "hello")
	p.AllowPrivate = true
	_, err = c.Fetch(t.Context(), p, "", get("http://api.test/"))
	refused(t, err, abi.CodeDenied, "address", "not public")
	p.PrivateNames = true
	for range 2 {
		got, err = c.Fetch(t.Context(), p, "", get("http://api.test/"))
		answered(t, got, err, 200, "hello")
	}
	p.PrivateNames = false
	_, err = c.Fetch(t.Context(), p, "", get("http://api.test/"))
	refused(t, err, abi.CodeDenied, "address", "not public")
	if len(w.dialled) != 2 {
		t.Errorf("dialled %v", w.dialled)
	}
}

// Errors are the same as on a connection of its own.
func TestKeepFailures(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":81", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
	})
	w.raw(apiAddr+":82", heard(func(net.Conn) {}))
	w.serve(apiAddr+":444", hello)
	c := w.keeps()
	for url, want := range map[string]struct {
		code   abi.Code
		reason string
	}{
		"http://nobody.test/":   {abi.CodeUnavailable, egress.ReasonDNS},
		"http://api.test/":      {abi.CodeUnavailable, egress.ReasonConnect},
		"http://api.test:81/":   {abi.CodeLimit, egress.ReasonHeaders},
		"http://api.test:82/":   {abi.CodeUnavailable, egress.ReasonConnection},
		"https://api.test:444/": {abi.CodeUnavailable, egress.ReasonTLS},
		"http://127.0.0.1/":     {abi.CodeDenied, egress.ReasonAddress},
	} {
		_, err := c.Fetch(t.Context(), granted(t, strings.TrimSuffix(url, "/")), "", get(url))
		refused(t, err, want.code, want.reason, "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Fetch(ctx, granted(t, "http://api.test"), "", get("http://api.test/"))
	refused(t, err, abi.CodeCancelled, egress.ReasonTurn, "")
}

// ConnectTimeout is shorter than the timeout of a fetch.
func TestConnectTime(t *testing.T) {
	t.Parallel()
	for _, idle := range []int{0, 2} {
		w := newFakeNet(t)
		w.resolve("api.test", apiAddr)
		c := w.client(func(o *egress.Options) {
			o.ConnectTimeout, o.Timeout, o.KeepAlive.MaxIdlePerHost = 20*time.Millisecond, time.Hour, idle
			o.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		_, err := c.Fetch(t.Context(), granted(t, "http://api.test"), "", get("http://api.test/"))
		refused(t, err, abi.CodeUnavailable, egress.ReasonConnect, "cannot be reached")
		c.Close()
	}
}

// Data that a server sends between two exchanges does not reach the host's log, and the
// connection is not reused. The test captures the log of the program, so it does not run
// in parallel.
func TestKeepUnasked(t *testing.T) {
	var said safeBuffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	talked := make(chan struct{})
	w.raw(apiAddr+":80", heard(func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		<-talked
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nunasked")
		_, _ = io.Copy(io.Discard, c) // until the client leaves
		talked <- struct{}{}
	}))
	c, p := w.keeps(), granted(t, "http://api.test")
	got, err := c.Fetch(t.Context(), p, "", get("http://api.test/"))
	answered(t, got, err, 200, "hello")
	talked <- struct{}{}
	<-talked
	if said.String() != "" {
		t.Errorf("the log has %q", said.String())
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// BenchmarkKeep compares a new connection per request with a kept one.
func BenchmarkKeep(b *testing.B) {
	for name, idle := range map[string]int{"own": 0, "kept": 2} {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewTLSServer(http.HandlerFunc(hello))
			defer s.Close()
			roots := x509.NewCertPool()
			roots.AddCert(s.Certificate())
			c := egress.New(egress.Options{RootCAs: roots, KeepAlive: egress.KeepAlive{MaxIdlePerHost: idle}})
			defer c.Close()
			grant, err := egress.ParseGrant(s.URL)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := c.Fetch(b.Context(), egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: true}, "", get(s.URL+"/")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// NoPublicHTTP also holds on connections that another policy has left open. A name with
// public and private addresses leads to the private one alone.
func TestNoPublicHTTP(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("www.example.com", apiAddr)
	w.resolve("mixed.test", apiAddr+" 10.0.0.1")
	w.serveTLS(apiAddr+":443", hello)
	w.serve(apiAddr+":80", hello)
	w.serve("10.0.0.1:80", hello)
	for _, c := range []*egress.Client{w.client(), w.keeps()} {
		p := granted(t, "http://www.example.com", "https://www.example.com", "http://mixed.test")
		got, err := c.Fetch(t.Context(), p, "", get("http://www.example.com/"))
		answered(t, got, err, 200, "hello")
		p.NoPublicHTTP, p.PrivateNames = true, true
		_, err = c.Fetch(t.Context(), p, "", get("http://www.example.com/"))
		refused(t, err, abi.CodeDenied, egress.ReasonAddress, "http://www.example.com is or resolves to a public address")
		for _, url := range []string{"https://www.example.com/", "http://mixed.test/"} {
			got, err = c.Fetch(t.Context(), p, "", get(url))
			answered(t, got, err, 200, "hello")
		}
		if last := w.dialled[len(w.dialled)-1].String(); last != "10.0.0.1:80" {
			t.Errorf("dialled %s", last)
		}
	}
}
