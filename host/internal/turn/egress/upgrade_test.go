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

// TestUpgradedConnection (U-054): a request that upgrades its connection goes by HTTP/1.1 where others go by
// HTTP/2, over TLS 1.3 as well, and its connection outlives it. Addresses are checked as ever.
func TestUpgradedConnection(t *testing.T) {
	w := newFakeNet(t)
	w.resolve("api.example.com", "93.184.216.34")
	w.resolve("private.example.com", "10.1.2.3")
	echo := func(rw http.ResponseWriter, r *http.Request) {
		conn, buf, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n%s %x ", r.Proto, r.TLS.Version)
		_, _ = io.CopyN(conn, buf, 5)
	}
	w.serveTLS("93.184.216.34:443", echo, func(s *httptest.Server) { s.EnableHTTP2 = true })
	w.serveTLS("93.184.216.34:445", echo, func(s *httptest.Server) { s.TLS = &tls.Config{MaxVersion: tls.VersionTLS12} })
	p := granted(t, "https://api.example.com", "https://api.example.com:445", "https://private.example.com")
	p.HTTP2 = true
	c := w.client(func(o *egress.Options) { o.KeepAlive.MaxIdlePerHost = 1 })
	t.Cleanup(c.Close)
	upgrade := func(url string) (*http.Response, error) {
		return carry(t, withUpgrade{c.Transport(p)}, url)
	}
	resp, err := upgrade("https://api.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	conn, ok := resp.Body.(io.ReadWriter)
	if !ok || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s, its body is %T", resp.Status, resp.Body)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "HTTP/1.1 304 hello" {
		t.Errorf("%q, %v", got, err)
	}
	for url, reason := range map[string]string{
		"https://api.example.com:445/": egress.ReasonTLS, "https://private.example.com/": egress.ReasonAddress, "https://other.example.com/": egress.ReasonGrant,
	} {
		var broken *abi.Error
		if _, err := upgrade(url); !errors.As(err, &broken) || broken.Reason != reason {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// withUpgrade asks for another protocol.
type withUpgrade struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (u withUpgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	return u.next.RoundTrip(r)
}
