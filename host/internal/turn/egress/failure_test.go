package egress_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("example.com", apiAddr)
	w.resolve("other.test", apiAddr)
	w.serveTLS(apiAddr+":443", echo)
	w.raw(apiAddr+":444", heard(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") }))
	p := granted(t, "https://example.com", "https://other.test", "https://example.com:444")

	got, err := w.client().Fetch(t.Context(), p, "", get("https://example.com/x"))
	answered(t, got, err, 200, "GET example.com /x ")
	_, err = w.client().Fetch(t.Context(), p, "", get("https://other.test/x"))
	refused(t, err, abi.CodeUnavailable, "tls", "certificate")
	_, err = w.client().Fetch(t.Context(), p, "", get("https://example.com:444/x"))
	refused(t, err, abi.CodeUnavailable, "tls", "TLS with https://example.com:444/x failed")
	_, err = w.client(func(o *egress.Options) { o.RootCAs = nil }).Fetch(t.Context(), p, "", get("https://example.com/x"))
	refused(t, err, abi.CodeUnavailable, "tls", "unknown authority")
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("example.com", apiAddr)
	w.serveTLS(apiAddr+":443", echo, oldTLS)
	_, err := w.client().Fetch(t.Context(), granted(t, "https://example.com"), "", get("https://example.com/"))
	refused(t, err, abi.CodeUnavailable, "tls", "protocol version")
}

func TestNetworkFailures(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.resolve("empty.test", "")
	w.servers[netip.MustParseAddrPort(apiAddr+":81")] = "127.0.0.1:1" // which no test listens on
	w.raw(apiAddr+":82", func(net.Conn) {})
	w.raw(apiAddr+":83", heard(func(c net.Conn) { _, _ = io.WriteString(c, "220 mail ready\r\n") }))
	w.raw(apiAddr+":84", heard(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") }))
	w.raw(apiAddr+":85", heard(func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
	}))
	w.raw(apiAddr+":86", heard(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n") }))
	for url, tt := range map[string]struct{ reason, text string }{
		"http://nowhere.test/": {"dns", "the name nowhere.test cannot be resolved"},
		"http://empty.test/":   {"dns", "has no address"},
		"http://api.test:80/":  {"connect", "cannot be reached"},
		"http://api.test:81/":  {"refused", "refused the connection"},
		"http://api.test:82/":  {"connection", "broke"},
		"http://api.test:83/":  {"protocol", "is not HTTP/1.1"},
		"http://api.test:84/":  {"connection", "broke"},
		"http://api.test:85/":  {"protocol", "status 101"},
		"http://api.test:86/":  {"protocol", "is not HTTP/1.1"},
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			_, err := w.client().Fetch(t.Context(), granted(t, strings.TrimSuffix(url, "/")), "", get(url))
			refused(t, err, abi.CodeUnavailable, tt.reason, tt.text)
		})
	}
}

// Data that a server sends before the request reaches neither the host's log nor the
// response.
func TestServerSpeaksFirst(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	said := make(chan struct{})
	w.raw(apiAddr+":80", func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
		close(said)
		_, _ = io.Copy(io.Discard, c)
	})
	c := w.client(func(o *egress.Options) {
		o.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			conn, err := w.dial(ctx, to)
			<-said
			return conn, err
		}
	})
	got, err := c.Fetch(t.Context(), granted(t, "http://a.test"), "", get("http://a.test/"))
	answered(t, got, err, 200, "first")
	if logged.Len() > 0 {
		t.Errorf("logged %s", logged.String())
	}
}

// A dead address of a name does not stop the next one.
func TestNextAddress(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", otherAddr+" "+apiAddr)
	w.serve(apiAddr+":80", echo)
	got, err := w.client().Fetch(t.Context(), granted(t, "http://api.test"), "", get("http://api.test/"))
	answered(t, got, err, 200, "GET api.test / ")
}

// An address that never answers uses only its share of the time.
func TestNextAddressAfterSilence(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", otherAddr+" "+apiAddr)
	w.serve(apiAddr+":80", echo)
	c := w.client(func(o *egress.Options) {
		o.Timeout = 2 * time.Second
		o.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr().String() == otherAddr {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return w.dial(ctx, to)
		}
	})
	got, err := c.Fetch(t.Context(), granted(t, "http://api.test"), "", get("http://api.test/"))
	answered(t, got, err, 200, "GET api.test / ")
}

func TestCallerEnds(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	arrived := make(chan struct{}, 1)
	w.serve(apiAddr+":80", func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	p := granted(t, "http://api.test")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := w.client().Fetch(ctx, p, "", get("http://api.test/"))
	refused(t, err, abi.CodeCancelled, "turn", "called off")

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = w.client().Fetch(ctx, p, "", get("http://api.test/"))
	refused(t, err, abi.CodeDeadline, "turn", "the caller ran out of time")
}
