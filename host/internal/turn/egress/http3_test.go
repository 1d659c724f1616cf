package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// http3Site serves HTTP/3 at a loopback address, with a certificate for it.
type http3Site struct {
	url   string
	roots *x509.CertPool
	conns atomic.Int32
}

func newHTTP3Site(t *testing.T) *http3Site {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	t.Cleanup(certified.Close)
	s := &http3Site{roots: x509.NewCertPool()}
	s.roots.AddCert(certified.Certificate())
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + socket.LocalAddr().String()
	server := &http3.Server{
		TLSConfig: &tls.Config{Certificates: certified.TLS.Certificates},
		ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context {
			s.conns.Add(1)
			return ctx
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/large" {
				w.Header().Set("Large", strings.Repeat("x", 16<<10))
			}
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s by %s", body, r.Proto)
		}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(socket)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = socket.Close()
		<-done
	})
	return s
}

// U-052: a policy with HTTP3 reaches hosts by HTTP/3, on kept connections and on such of its own.
func TestHTTP3(t *testing.T) {
	for name, c := range map[string]struct {
		keep, own bool
		conns     int32
	}{"kept": {keep: true, conns: 1}, "alone": {conns: 2}, "with its own certificates": {keep: true, own: true, conns: 2}} {
		s := newHTTP3Site(t)
		o := egress.Options{RootCAs: s.roots}
		p := granted(t, s.url)
		p.AllowPrivate, p.HTTP2, p.HTTP3 = true, true, true
		if c.keep {
			o.KeepAlive.MaxIdlePerHost = 1
		}
		if c.own {
			o.RootCAs, p.TLS = nil, &tls.Config{RootCAs: s.roots}
		}
		client := egress.New(o)
		t.Cleanup(client.Close)
		for range 2 {
			resp, err := carry(t, client.Transport(p), s.url)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := io.ReadAll(resp.Body)
			if err != nil || string(got) != "hello by HTTP/3.0" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			_ = resp.Body.Close()
		}
		if got := s.conns.Load(); got != c.conns {
			t.Errorf("%s: %d connections", name, got)
		}
	}
}

// HTTP/3 has the checks of addresses, certificates and headers that the others have.
func TestHTTP3Refused(t *testing.T) {
	s := newHTTP3Site(t)
	deaf, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deaf.Close() })
	for name, c := range map[string]struct {
		url    string
		change func(*egress.Options, *egress.Policy)
		reason string
	}{
		"a private address":         {s.url, func(_ *egress.Options, p *egress.Policy) { p.AllowPrivate = false }, egress.ReasonAddress},
		"without a grant":           {s.url, func(_ *egress.Options, p *egress.Policy) { p.Grants = nil }, egress.ReasonGrant},
		"another authority":         {s.url, func(o *egress.Options, _ *egress.Policy) { o.RootCAs = x509.NewCertPool() }, egress.ReasonTLS},
		"a host without QUIC":       {"https://" + deaf.LocalAddr().String(), func(o *egress.Options, _ *egress.Policy) { o.ConnectTimeout = 100 * time.Millisecond }, egress.ReasonConnect},
		"a header above the bound":  {s.url + "/large", func(o *egress.Options, _ *egress.Policy) { o.MaxResponseHeader = 1 << 10 }, ""},
		"a name of another address": {"https://example.com", func(o *egress.Options, _ *egress.Policy) { o.Resolver = newFakeNet(t) }, egress.ReasonDNS},
	} {
		for _, kept := range []int{0, 1} {
			o := egress.Options{RootCAs: s.roots, KeepAlive: egress.KeepAlive{MaxIdlePerHost: kept}}
			p := granted(t, c.url)
			p.AllowPrivate, p.HTTP3 = true, true
			c.change(&o, &p)
			client := egress.New(o)
			t.Cleanup(client.Close)
			resp, err := carry(t, client.Transport(p), c.url)
			if err == nil {
				_ = resp.Body.Close()
				t.Errorf("%s: it is answered %d", name, resp.StatusCode)
				continue
			}
			var broken *abi.Error
			if errors.As(err, &broken); c.reason != "" && (broken == nil || broken.Reason != c.reason) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
