package catalog_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"skep/host/internal/gateway/catalog"
	"skep/host/internal/turn/egress"
)

// rebinding is a resolver whose names lead to a public address once, and then inside.
type rebinding struct {
	mu      sync.Mutex
	lookups int
	dialled []netip.Addr
}

// LookupNetIP implements [egress.Resolver].
func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookups++
	if r.lookups == 1 {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// TestPublicClientRebinding (V-M25): a callback is posted once, to the public address
// that was checked. Its redirect is not followed, and when the name leads inside afterwards
// nothing is connected.
func TestPublicClientRebinding(t *testing.T) {
	t.Parallel()
	var paths []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.Header().Set("Connection", "close")
		http.Redirect(w, r, "/inside", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	names := &rebinding{}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c, err := catalog.NewPublicClient(func(o *egress.Options) {
		o.RootCAs, o.Resolver = roots, names
		o.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			names.mu.Lock()
			names.dialled = append(names.dialled, to.Addr())
			names.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}
	}, catalog.PublicBounds{Methods: []string{http.MethodPost}, MaxReply: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com/callback", bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("answered %s", resp.Status)
		}
	}
	server.Close() // its handlers have ended
	if len(paths) != 1 || paths[0] != "POST /callback " {
		t.Errorf("the server was asked for %q", paths)
	}
	if len(names.dialled) != 1 || !names.dialled[0].IsGlobalUnicast() || names.dialled[0].IsLoopback() || names.lookups != 2 {
		t.Errorf("dialled %v after %d lookups", names.dialled, names.lookups)
	}
}
