package http3_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	quichttp "github.com/quic-go/quic-go/http3"

	"skep/host/internal/api/http3"
	"skep/host/internal/api/listener"
)

// site is a server with a certificate of its own.
type site struct {
	*http3.Server
	url   string
	roots *x509.CertPool
}

func newSite(t *testing.T, limits listener.Limits, handler http.HandlerFunc) *site {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"hive.example"}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	inUse := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: private}}, NextProtos: []string{"h2"}}
	s, err := http3.Open(t.Context(), "127.0.0.1:0", http3.Options{
		TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return inUse, nil }}, Limits: limits, Handler: handler,
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return &site{s, "https://" + s.Addr().String(), roots}
}

func (s *site) tls() *tls.Config { return &tls.Config{RootCAs: s.roots, ServerName: "hive.example"} }

// client is a client with connections of its own.
func (s *site) client(t *testing.T) *http.Client {
	t.Helper()
	tr := &quichttp.Transport{TLSClientConfig: s.tls(), QUICConfig: &quic.Config{HandshakeIdleTimeout: 2 * time.Second}}
	t.Cleanup(func() { _ = tr.Close() })
	return &http.Client{Transport: tr}
}

// do sends a request and returns the text of its answer.
func do(ctx context.Context, c *http.Client, method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	rsp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	return string(text), err
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// TestServe (U-052, U-053): requests of one connection have streams with numbers, whose names
// they share; another connection knows none of them.
func TestServe(t *testing.T) {
	t.Parallel()
	s := newSite(t, listener.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		stream, ok := http3.StreamOf(r.Context())
		body, err := io.ReadAll(r.Body)
		if !ok || err != nil || r.TLS == nil || r.ProtoMajor != 3 {
			http.Error(w, fmt.Sprint(ok, err), http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodPost {
			stream.SetName(string(body))
		}
		first, named := stream.NameOf(0)
		_, _ = fmt.Fprint(w, stream.ID, " ", first, " ", named)
	})
	one, other := s.client(t), s.client(t)
	for i, step := range []struct {
		c            *http.Client
		method, want string
	}{
		{one, http.MethodPost, "0 x0 true"}, {one, http.MethodPost, "4 x0 true"}, {one, http.MethodGet, "8 x0 true"}, {other, http.MethodGet, "0  false"},
	} {
		got, err := do(t.Context(), step.c, step.method, s.url, fmt.Sprintf("x%d", i))
		if got != step.want || err != nil {
			t.Errorf("step %d: %q %v, want %q", i, got, err, step.want)
		}
	}
	if _, ok := http3.StreamOf(t.Context()); ok {
		t.Error("what came by no HTTP/3 has a stream")
	}
}

// TestNames (U-053): the names of a connection's streams have an end.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, listener.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		stream, _ := http3.StreamOf(r.Context())
		stream.SetName("x")
		_, oldest := stream.NameOf(stream.ID - 1024*4)
		_, old := stream.NameOf(max(0, stream.ID-1023*4))
		_, _ = fmt.Fprintf(w, "%v%v", oldest, old)
	})
	c := s.client(t)
	for i := range 1030 {
		if got, err := do(t.Context(), c, http.MethodGet, s.url, ""); got != "falsetrue" || err != nil {
			t.Fatalf("%d: %q %v", i, got, err)
		}
	}
}

// TestConnections: more connections than the limits allow are refused, and one that ends makes
// room.
func TestConnections(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]listener.Limits{"all": {Connections: 2}, "of an address": {PerAddress: 2}} {
		s := newSite(t, limits, func(http.ResponseWriter, *http.Request) {})
		first := &quichttp.Transport{TLSClientConfig: s.tls()}
		clients := []*http.Client{{Transport: first}, s.client(t), s.client(t)}
		for i, c := range clients {
			if _, err := do(t.Context(), c, http.MethodGet, s.url, ""); (err == nil) != (i < 2) {
				t.Errorf("%s: connection %d: %v", name, i, err)
			}
		}
		if n := s.Connections(); n != 2 {
			t.Errorf("%s: %d connections", name, n)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, name+": a connection that ended counts", func() bool { return s.Connections() == 1 })
		if _, err := do(t.Context(), clients[2], http.MethodGet, s.url, ""); err != nil {
			t.Errorf("%s: after one has ended: %v", name, err)
		}
	}
}

// deaf is a socket of a caller that does not get what is sent to it, as one whose address is
// another's.
type deaf struct {
	net.PacketConn
	got atomic.Int64
}

func (d *deaf) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := d.PacketConn.ReadFrom(b)
		if err != nil {
			return n, from, err
		}
		d.got.Add(1)
	}
}

// TestForgedAddresses (U-052): the first packets of callers that do not read what is sent to
// their addresses are answered, and hold no connection.
func TestForgedAddresses(t *testing.T) {
	t.Parallel()
	s := newSite(t, listener.Limits{Connections: 1}, func(http.ResponseWriter, *http.Request) {})
	socket, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deaf{PacketConn: socket}
	tr := &quic.Transport{Conn: d}
	ctx, cancel := context.WithCancel(t.Context())
	const callers = 200
	ended := make(chan error, callers)
	config := s.tls()
	config.NextProtos = []string{quichttp.NextProtoH3}
	for range callers {
		go func() {
			_, err := tr.Dial(ctx, s.Addr(), config, nil)
			ended <- err
		}()
	}
	eventually(t, "the first packets are not answered", func() bool { return d.got.Load() >= callers })
	if n := s.Connections(); n != 0 {
		t.Errorf("%d connections of callers whose addresses are not proven", n)
	}
	if _, err := do(t.Context(), s.client(t), http.MethodGet, s.url, ""); err != nil {
		t.Errorf("a caller beside them: %v", err)
	}
	cancel()
	for range callers {
		if err := <-ended; err == nil {
			t.Error("a caller that reads nothing is connected")
		}
	}
	if err := errors.Join(tr.Close(), socket.Close()); err != nil {
		t.Error(err)
	}
}

// TestEarlyData (U-052): a caller that comes again may not send a request before the handshake
// has ended: it could be a replay.
func TestEarlyData(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	s := newSite(t, listener.Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		if r.TLS.HandshakeComplete {
			served.Add(1)
		}
	})
	config := s.tls()
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for i := range 3 {
		var used *quic.Conn
		tr := &quichttp.Transport{TLSClientConfig: config, Dial: func(ctx context.Context, at string, c *tls.Config, q *quic.Config) (*quic.Conn, error) {
			conn, err := quic.DialAddrEarly(ctx, at, c, q)
			used = conn
			return conn, err
		}}
		if _, err := do(t.Context(), &http.Client{Transport: tr}, quichttp.MethodGet0RTT, s.url, ""); err != nil {
			t.Fatal(err)
		}
		if state := used.ConnectionState(); state.Used0RTT || state.TLS.DidResume != (i > 0) {
			t.Errorf("connection %d: early data %v, resumed %v", i, state.Used0RTT, state.TLS.DidResume)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := served.Load(); n != 3 {
		t.Errorf("%d requests after their handshake", n)
	}
}

// TestShutdown: requests that run are waited for, until their time is over; connections
// without one are not.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"in time": time.Minute, "cut": 50 * time.Millisecond} {
		entered, release := make(chan struct{}), make(chan struct{})
		s := newSite(t, listener.Limits{}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				return
			}
			close(entered)
			select {
			case <-release:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, "whole")
		})
		if _, err := do(t.Context(), s.client(t), http.MethodGet, s.url, ""); err != nil {
			t.Fatal(err)
		}
		answer := make(chan string, 1)
		c := s.client(t)
		go func() {
			text, err := do(t.Context(), c, http.MethodPost, s.url, "")
			answer <- fmt.Sprint(text, " ", err == nil)
		}()
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), grace)
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(ctx) }()
		if name == "in time" {
			close(release)
		}
		if err := <-ended; (err == nil) != (name == "in time") {
			t.Errorf("%s: %v", name, err)
		}
		if got := <-answer; (got == "whole true") != (name == "in time") {
			t.Errorf("%s: %s", name, got)
		}
		cancel()
	}
}
