package egress_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNet is an Internet of loopback servers: names with public addresses lead to
// listeners of the test, over real sockets.
type fakeNet struct {
	t *testing.T

	mu      sync.Mutex
	answers map[string][][]netip.Addr // per name: one answer a lookup, the last again
	lookups map[string]int
	servers map[netip.AddrPort]string
	dialled []netip.AddrPort
	roots   *x509.CertPool
}

func newFakeNet(t *testing.T) *fakeNet {
	return &fakeNet{
		t: t, answers: map[string][][]netip.Addr{}, lookups: map[string]int{},
		servers: map[netip.AddrPort]string{}, roots: x509.NewCertPool(),
	}
}

// resolve sets the answers for a name, each a list of addresses.
func (w *fakeNet) resolve(name string, answers ...string) {
	for _, a := range answers {
		var addrs []netip.Addr
		for text := range strings.FieldsSeq(a) {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		w.answers[name] = append(w.answers[name], addrs)
	}
}

// serve puts a server at a public address and port.
func (w *fakeNet) serve(at string, handle http.HandlerFunc) *httptest.Server {
	return w.start(at, handle, func(s *httptest.Server) { s.Start() })
}

func (w *fakeNet) serveTLS(at string, handle http.HandlerFunc, change ...func(*httptest.Server)) {
	w.start(at, handle, func(s *httptest.Server) {
		for _, c := range change {
			c(s)
		}
		s.StartTLS()
		w.roots.AddCert(s.Certificate())
	})
}

func (w *fakeNet) start(at string, handle http.HandlerFunc, start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(handle)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	w.t.Cleanup(s.Close)
	w.servers[netip.MustParseAddrPort(at)] = s.Listener.Addr().String()
	return s
}

// raw puts a listener at a public address and passes each connection to talk.
func (w *fakeNet) raw(at string, talk func(net.Conn)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = conn.Close() }()
				talk(conn)
			})
		}
	})
	w.t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	w.servers[netip.MustParseAddrPort(at)] = l.Addr().String()
}

// heard lets a server talk after it has read the request: data that a server sends before
// it has read everything may be lost.
func heard(talk func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		talk(c)
	}
}

// LookupNetIP implements [egress.Resolver]. Names end with a dot.
func (w *fakeNet) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, ok := strings.CutSuffix(name, ".")
	if !ok {
		return nil, fmt.Errorf("%s is not absolute", name)
	}
	answers := w.answers[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	n := min(w.lookups[name], len(answers)-1)
	w.lookups[name]++
	return slices.Clone(answers[n]), nil
}

func (w *fakeNet) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to)
	at, ok := w.servers[to]
	w.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("nobody listens at %s", to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", at)
}

// client makes a client in the fake network; change may set further options.
func (w *fakeNet) client(change ...func(*egress.Options)) *egress.Client {
	o := egress.Options{Resolver: w, Dial: w.dial, RootCAs: w.roots, Timeout: 30 * time.Second}
	for _, c := range change {
		c(&o)
	}
	return egress.New(o)
}

// granted returns a policy with these grants.
func granted(t *testing.T, grants ...string) egress.Policy {
	t.Helper()
	var p egress.Policy
	for _, s := range grants {
		g, err := egress.ParseGrant(s)
		if err != nil {
			t.Fatal(err)
		}
		p.Grants = append(p.Grants, g)
	}
	return p
}

func get(url string) abi.FetchRequest { return abi.FetchRequest{Method: "GET", URL: url} }

// refused checks an error.
func refused(t *testing.T, err *abi.Error, code abi.Code, reason, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s (%s)", code, reason)
	}
	if err.Code != code || err.Reason != reason || !strings.Contains(err.Message, text) {
		t.Errorf("got %s (%s), want %s (%s) with %q", err, err.Reason, code, reason, text)
	}
	if err.Op != "http.fetch" {
		t.Errorf("op %q", err.Op)
	}
}

func answered(t *testing.T, got abi.FetchResponse, err *abi.Error, status int, body string) {
	t.Helper()
	if err != nil {
		t.Fatalf("got %s (%s), want status %d", err, err.Reason, status)
	}
	if got.Status != status || got.Body != body {
		t.Errorf("got %d %q, want %d %q", got.Status, got.Body, status, body)
	}
}
