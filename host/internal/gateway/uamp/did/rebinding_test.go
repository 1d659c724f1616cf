package did_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/gateway/catalog"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/turn/egress"
)

// rebinding is the DNS of a host: its name leads to each address once, to the last one for good.
// What is dialled is counted, and reaches the server.
type rebinding struct {
	server    *httptest.Server
	mu        sync.Mutex
	addresses []string
	dialled   []string
}

// LookupNetIP implements [egress.Resolver].
func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := netip.MustParseAddr(r.addresses[0])
	if len(r.addresses) > 1 {
		r.addresses = r.addresses[1:]
	}
	return []netip.Addr{at}, nil
}

func (r *rebinding) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	r.mu.Lock()
	r.dialled = append(r.dialled, to.Addr().String())
	r.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", r.server.Listener.Addr().String())
}

// TestRebinding (U-031): the document of a host is fetched from the public address that was checked.
// When the name leads inside afterwards nothing is dialled, and a redirect is not followed.
func TestRebinding(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 10)
	r := &rebinding{addresses: []string{"93.184.216.34", "93.184.216.34", "127.0.0.1", "10.0.0.7", "169.254.169.254", "::1"}}
	r.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		paths <- q.URL.Path
		w.Header().Set("Connection", "close")
		if q.URL.Path == "/agents/moved/did.json" {
			http.Redirect(w, q, "https://example.com/agents/x/did.json", http.StatusFound)
			return
		}
		id := "did:web:example.com" + strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(q.URL.Path, "/.well-known"), "/did.json"), "/", ":")
		_ = json.NewEncoder(w).Encode(did.Document{ID: id})
	}))
	t.Cleanup(r.server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(r.server.Certificate())
	c, err := catalog.NewPublicClient(func(o *egress.Options) { o.RootCAs, o.Resolver, o.Dial = roots, r, r.dial },
		catalog.PublicBounds{Methods: []string{http.MethodGet}, MaxReply: did.MaxDocument})
	if err != nil {
		t.Fatal(err)
	}
	resolver := did.NewResolver(c.Transport, slog.New(slog.DiscardHandler))
	if d, err := resolver.Resolve(t.Context(), "did:web:example.com", "", "lab"); err != nil || d.ID != "did:web:example.com" {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := resolver.Resolve(t.Context(), "did:web:example.com:agents:moved", "", "lab"); !errors.Is(err, did.ErrUnresolved) || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect: %v", err)
	}
	for _, agent := range []string{"a", "b", "c", "d"} {
		if d, err := resolver.Resolve(t.Context(), "did:web:example.com:agents:"+agent, "", "lab"); !errors.Is(err, did.ErrUnresolved) || !strings.Contains(err.Error(), "address") {
			t.Errorf("%s: %+v, %v", agent, d, err)
		}
	}
	r.server.Close() // its handlers have ended
	close(paths)
	var got []string
	for path := range paths {
		got = append(got, path)
	}
	if want := []string{"/.well-known/did.json", "/agents/moved/did.json"}; !slices.Equal(got, want) {
		t.Errorf("the host was asked for %q, want %q", got, want)
	}
	if want := []string{"93.184.216.34", "93.184.216.34"}; !slices.Equal(r.dialled, want) {
		t.Errorf("dialled %q, want %q", r.dialled, want)
	}
}
