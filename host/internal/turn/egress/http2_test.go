package egress_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// TestHTTP2: a policy with HTTP2 reaches hosts by HTTP/2 over TLS 1.3, on kept connections
// and on such of its own, and no host that has only what is older.
func TestHTTP2(t *testing.T) {
	w := newFakeNet(t)
	w.resolve("api.example.com", "93.184.216.34")
	w.serveTLS("93.184.216.34:443", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(rw, "%s by %s with TLS %x", body, r.Proto, r.TLS.Version)
	}, func(s *httptest.Server) { s.EnableHTTP2 = true })
	answer := func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "old") }
	w.serveTLS("93.184.216.34:444", answer)
	w.serveTLS("93.184.216.34:445", answer, func(s *httptest.Server) {
		s.EnableHTTP2, s.TLS = true, &tls.Config{MaxVersion: tls.VersionTLS12}
	})
	for name, change := range map[string]func(*egress.Options, *egress.Policy){
		"kept":  func(o *egress.Options, _ *egress.Policy) { o.KeepAlive.MaxIdlePerHost = 1 },
		"alone": func(*egress.Options, *egress.Policy) {},
		"with its own certificates": func(o *egress.Options, p *egress.Policy) {
			o.KeepAlive.MaxIdlePerHost = 1
			p.TLS = &tls.Config{RootCAs: o.RootCAs}
		},
	} {
		p := granted(t, "https://api.example.com", "https://api.example.com:444", "https://api.example.com:445")
		p.HTTP2 = true
		c := w.client(func(o *egress.Options) { change(o, &p) })
		t.Cleanup(c.Close)
		for range 2 {
			resp, err := carry(t, c.Transport(p), "https://api.example.com/")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := io.ReadAll(resp.Body)
			if want := "hello by HTTP/2.0 with TLS 304"; err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			_ = resp.Body.Close()
		}
		for _, url := range []string{"https://api.example.com:444/", "https://api.example.com:445/"} {
			_, err := carry(t, c.Transport(p), url)
			var broken *abi.Error
			if !errors.As(err, &broken) || broken.Reason != egress.ReasonTLS {
				t.Errorf("%s: %s: %v", name, url, err)
			}
		}
	}
}

// TestOfferHTTP2: a policy that offers HTTP/2 reaches hosts that speak it alone, and such as do
// not.
func TestOfferHTTP2(t *testing.T) {
	w := newFakeNet(t)
	w.resolve("api.example.com", "93.184.216.34")
	answer := func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.Proto) }
	w.serveTLS("93.184.216.34:443", answer, func(s *httptest.Server) {
		s.TLS = &tls.Config{NextProtos: []string{"h2"}}
		s.EnableHTTP2 = true
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP2(true)
	})
	w.serveTLS("93.184.216.34:444", answer)
	p := granted(t, "https://api.example.com", "https://api.example.com:444")
	p.OfferHTTP2 = true
	for name, kept := range map[string]int{"kept": 1, "alone": 0} {
		c := w.client(func(o *egress.Options) { o.KeepAlive.MaxIdlePerHost = kept })
		t.Cleanup(c.Close)
		for url, want := range map[string]string{"https://api.example.com/": "HTTP/2.0", "https://api.example.com:444/": "HTTP/1.1"} {
			resp, err := carry(t, c.Transport(p), url)
			if err != nil {
				t.Errorf("%s: %s: %v", name, url, err)
				continue
			}
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
				t.Errorf("%s: %s: %q, %v", name, url, got, err)
			}
			_ = resp.Body.Close()
		}
	}
}
