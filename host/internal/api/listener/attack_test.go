package listener_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

// files counts what this process has open.
func files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// flood opens connections from many addresses, sends a part of a request on each,
// and keeps as many open as it can until stop.
func flood(t *testing.T, l *listener.Listener, n int, part string) (stop func()) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var held []net.Conn
	for w := range 8 {
		all.Go(func() {
			for i := w; i < n; i += 8 {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}}
				c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
				if err == nil {
					_, _ = io.WriteString(c, part)
					mu.Lock()
					held = append(held, c)
					mu.Unlock()
				}
			}
		})
	}
	return func() {
		all.Wait()
		for _, c := range held {
			_ = c.Close()
		}
	}
}

// persist retries over new connections until it gets an answer: a slow machine
// may not reach a request before its connection is evicted.
func persist(t *testing.T, a *testCA, url string) {
	t.Helper()
	var last error
	for range 10 {
		client := caller(t, &tls.Config{RootCAs: a.pool()})
		_, body, err := get(t.Context(), client, url)
		client.CloseIdleConnections()
		if err == nil && body == "hello" {
			return
		}
		last = err
	}
	t.Errorf("a caller with something to ask gets no answer: %v", last)
}

// With ten times as many half-open connections as allowed, a client with a
// request gets answers all the while, over a new connection each time. In the end
// nothing is left open.
func TestHalfOpenFlood(t *testing.T) {
	const most = 100
	certs := func(d *certificateFixture, a *testCA) *listener.Certificates {
		d.put(a.issue(2, nextYear()))
		return d.load()
	}
	for name, part := range map[string]string{"silent": "", "slow header": "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", "half a hello": "\x16\x03\x01\x02\x00\x01"} {
		t.Run(name, func(t *testing.T) {
			a, d := newTestCA(t), newCertificateFixture(t)
			scheme, c := "http://", (*listener.Certificates)(nil)
			if name == "half a hello" {
				scheme, c = "https://", certs(d, a)
			}
			goroutines, fds := runtime.NumGoroutine(), files(t)
			func() {
				l := open(t, listener.Limits{Connections: most, PerAddress: 10}, c, hello)
				stop := flood(t, l, 10*most, part)
				defer stop()
				for range 50 {
					persist(t, a, scheme+l.Addr().String())
				}
				until(t, "the flood is there", func() bool { return l.Counts().Evicted > 0 })
				if n := l.Counts(); n.Open > most {
					t.Errorf("%d connections are open", n.Open)
				}
				stop()
				until(t, "all have left", func() bool { return l.Counts().Open == 0 && l.Addresses() == 0 })
			}()
			until(t, "nothing leaks", func() bool { return runtime.NumGoroutine() <= goroutines+10 && files(t) <= fds+10 })
		})
	}
}

// A header that does not end is cut off, however often a byte of it comes.
func TestSlowHeader(t *testing.T) {
	t.Parallel()
	l := open(t, listener.Limits{}, nil, hello, func(s *http.Server) { s.ReadHeaderTimeout = 300 * time.Millisecond })
	c := dialFrom(t, "127.0.0.2", l)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, c)
	}()
	for {
		select {
		case <-over:
			return
		case <-time.After(20 * time.Millisecond):
			_, _ = io.WriteString(c, "x") // fails once it is cut
		}
	}
}

func TestHeaderBombs(t *testing.T) {
	t.Parallel()
	l := open(t, listener.Limits{}, nil, hello)
	for name, bomb := range map[string]string{
		"one long value":  "GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 1<<20),
		"many":            "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 1<<17),
		"a long line":     "GET /" + strings.Repeat("x", 1<<20),
		"an endless name": "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("x", 1<<20),
		"two lengths":     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"no host":         "GET / HTTP/1.1\r\n\r\n",
		"nonsense":        "\x00\x01\x02\r\n\r\n",
	} {
		c := dialFrom(t, "127.0.0.2", l)
		go func() { _, _ = io.WriteString(c, bomb) }()
		rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && (rsp.StatusCode != http.StatusRequestHeaderFieldsTooLarge && rsp.StatusCode != http.StatusBadRequest) {
			t.Errorf("%s: %s", name, rsp.Status)
		}
		_ = c.Close()
	}
	ask(t, dialFrom(t, "127.0.0.2", l))
}

// Requests that come at once are answered one after the other, in order.
func TestPipelining(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	l := open(t, listener.Limits{}, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	c := dialFrom(t, "127.0.0.2", l)
	const n = 500
	go func() {
		for i := range n {
			_, _ = fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
		}
	}()
	in := bufio.NewReader(c)
	for i := range n {
		rsp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(rsp.Body); err != nil || string(body) != fmt.Sprintf("/%d", i) {
			t.Fatalf("answer %d: %q, %v", i, body, err)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d requests of one connection at once", most.Load())
	}
}

// frame is one of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// Frames of HTTP/2.
const (
	headers, reset, settings, continuation = 1, 3, 4, 9

	endStream, endHeaders = 1, 4
)

// getRoot is a request in HPACK: GET, https, / and an :authority.
var getRoot = []byte{0x82, 0x87, 0x84, 0x01, 1, 'x'}

// dial2 opens a connection that speaks HTTP/2 and takes whatever comes.
func dial2(t *testing.T, a *testCA, l *listener.Listener) (c net.Conn, over <-chan struct{}) {
	t.Helper()
	c, err := (&tls.Dialer{Config: &tls.Config{RootCAs: a.pool(), NextProtos: []string{"h2"}}}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, c)
	}()
	t.Cleanup(func() { _ = c.Close(); <-done })
	if _, err := c.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(settings, 0, 0, nil)...)); err != nil {
		t.Fatal(err)
	}
	return c, done
}

// Requests that are reset at once run no more handlers than allowed, and their
// connection is closed.
func TestRapidReset(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	var now, most atomic.Int64
	free := make(chan struct{})
	l := open(t, listener.Limits{}, d.load(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "x" {
			hello(w, r)
			return
		}
		for n := now.Add(1); ; {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		defer now.Add(-1)
		<-free
	}))
	defer close(free)
	c, over := dial2(t, a, l)
	var err error
	for stream := uint32(1); stream < 100_000 && err == nil; stream += 2 {
		_, err = c.Write(append(frame(headers, endStream|endHeaders, stream, getRoot), frame(reset, 0, stream, []byte{0, 0, 0, 8})...))
	}
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Error("whoever takes back every request is not cut off")
	}
	if n := most.Load(); n > 100 {
		t.Errorf("%d handlers ran at once", n)
	}
	if _, body, err := get(t.Context(), caller(t, &tls.Config{RootCAs: a.pool()}), "https://"+l.Addr().String()); err != nil || body != "hello" {
		t.Errorf("a caller beside it: %q, %v", body, err)
	}
}

// A header that goes on and on in HTTP/2 is cut off as well.
func TestContinuationFlood(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	l := open(t, listener.Limits{}, d.load(), hello)
	c, over := dial2(t, a, l)
	more := append([]byte{0x00, 1, 'a', 0x7f, 0x81, 0x77}, []byte(strings.Repeat("x", 15<<10))...)
	_, err := c.Write(frame(headers, endStream, 1, getRoot))
	for range 10_000 {
		if err == nil {
			_, err = c.Write(frame(continuation, 0, 1, more))
		}
	}
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Error("a header without an end is not cut off")
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Error(err)
	}
}
