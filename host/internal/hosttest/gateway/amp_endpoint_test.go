package gateway_test

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"skep/host"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/egress"
)

// publicly are the options of a host that finds a server, whose certificate has the name, at each
// public name.
func publicly(server *httptest.Server) func(*host.Options) {
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return func(o *host.Options) {
		o.Network = func(e *egress.Options) {
			e.RootCAs, e.Resolver = roots, publicNames{}
			e.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
			}
		}
	}
}

// publicNames is a resolver whose names lead to one public address.
type publicNames struct{}

// LookupNetIP implements [egress.Resolver].
func (publicNames) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// TestAMPEndpoint (M-028, M-029, M-091, M-098): a question to an agent that has registered at a public
// name goes there; its answer is read where it says, and may be as large as max_body.
func TestAMPEndpoint(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80<<10)
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "example.com" || r.Header.Get("Authorization") != "Bearer the-secret-of-agent-7" {
			t.Errorf("%s %s%s is shown %q", r.Method, r.Host, r.URL, r.Header.Get("Authorization"))
		}
		if r.Method == http.MethodPost {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			m, err := amptest.Parse(text)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Location", "/answers/"+m.Message.ID)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		m := amptest.New("response", "agent-7", "boss", amptest.Result(amptest.Object{"text": "polled " + long}))
		m.Message.Headers["correlation_id"] = strings.TrimPrefix(r.URL.Path, "/answers/")
		_, _ = io.WriteString(w, m.Text())
	}))
	t.Cleanup(endpoint.Close)
	s := hosttest.NewSite(t, strings.Replace(file("hive", `[gateways.amp]
[gateways.amp.partners.mesh]
ids = ["agent-*"]
may = ["register"]
[[auth.keys]]
id = "mesh"
role = "agent"
key = "the-token-of-mesh-at-hive"
`), `"a2a"]`, `"a2a", "amp"]`, 1), publicly(endpoint))
	r := ampControl(t, s, "the-token-of-mesh-at-hive", "registration", amptest.Object{
		"agent":          amptest.Object{"id": "agent-7"},
		"endpoints":      amptest.Object{"invoke": "https://example.com/invoke"},
		"authentication": amptest.Object{"type": "bearer", "credentials": "the-secret-of-agent-7"},
	})
	if r.Status != http.StatusOK {
		t.Fatalf("registered: %d %s", r.Status, r.Text)
	}
	got := s.Do(hosttest.AliceKey, "t-1", hosttest.Step{"send_request", hosttest.Args{"target": "agent-7@mesh", "subject": "s", "body": "hello"}}, hosttest.Step{"await_message", hosttest.Args{}})
	if !strings.Contains(got, "polled "+long) {
		t.Errorf("the answer has %d bytes: %.300s", len(got), got)
	}
}
