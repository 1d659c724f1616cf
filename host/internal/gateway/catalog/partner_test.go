package catalog_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
	"skep/host/internal/turn/egress"
)

// remote is a partner's host, which answers by the path.
func remote(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("X-Own"))
	})
	mux.HandleFunc("/bytes/", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/bytes/%d", &n)
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		_, _ = io.WriteString(w, strings.Repeat("x", n))
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// partnerAt is a partner at an address that only allow_private opens.
func partnerAt(url string, change ...func(*config.Partner)) config.Gateway {
	p := config.Partner{
		Name: "shop", Tenant: "acme", URL: url, IDs: []string{"shop-*"}, AuthToken: "the-token", APIKey: "the-key", May: []string{"ask", "tell"},
		Timeout: time.Minute, GiveUp: time.Second, RetryInDoubt: true, AllowPrivate: true, Protocol: &config.A2APartner{},
	}
	for _, c := range change {
		c(&p)
	}
	return config.Gateway{Name: "a2a", MaxBody: config.KiB, Partners: []config.Partner{p}}
}

// get returns the body of an answer, or the error of the request or its body.
func get(ctx context.Context, p gateway.Partner, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Own", "own")
	req.Header.Set("Authorization", "Basic another")
	resp, err := p.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func partner(t *testing.T, g config.Gateway, change ...func(*catalog.Options)) gateway.Partner {
	t.Helper()
	p, ok := newCatalog(t, newDefinitions(g), change...).Partner("shop")
	if !ok {
		t.Fatal("no partner")
	}
	return p
}

// A partner is as its table says, and its client shows the credential to its own hosts
// alone.
func TestPartner(t *testing.T) {
	t.Parallel()
	url, elsewhere := remote(t), remote(t)
	p := partner(t, partnerAt(url+"/a2a"))
	got, err := get(t.Context(), p, url+"/any")
	if err != nil || got != "Bearer the-token the-key own" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := get(t.Context(), p, elsewhere); err == nil || strings.Contains(err.Error(), "the-token") {
		t.Errorf("another host was called: %v", err)
	}
	p.Client = nil
	want := gateway.Partner{
		Name: "shop", Tenant: "acme", URL: url + "/a2a", IDs: []string{"shop-*"}, May: gateway.Rights{gateway.MayAsk, gateway.MayTell},
		Timeout: time.Minute, GiveUp: time.Second, RetryInDoubt: true, Options: map[string]any{"card": "", "keys": []string(nil)},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	card := partner(t, partnerAt("", func(p *config.Partner) { p.Protocol = &config.A2APartner{Card: url + "/card.json"} }))
	if _, err := get(t.Context(), card, url+"/card.json"); err != nil || card.Options["card"] != url+"/card.json" {
		t.Errorf("the host of the card: %v", err)
	}
	if none := partner(t, partnerAt("")); none.Client != nil {
		t.Error("a partner without an address has a client")
	}
}

// Private addresses need allow_private in the partner's table (G-055).
func TestPrivatePartner(t *testing.T) {
	t.Parallel()
	url := remote(t)
	public := func(p *config.Partner) { p.AllowPrivate = false }
	if _, err := get(t.Context(), partner(t, partnerAt(url, public)), url); err == nil || !strings.Contains(err.Error(), "allow_private = true in [gateways.a2a.partners.shop]") {
		t.Errorf("without allow_private: %v", err)
	}
	if _, err := get(t.Context(), partner(t, partnerAt(url)), url); err != nil {
		t.Errorf("with allow_private: %v", err)
	}
}

// Answers are bounded by max_body, streams of events by a multiple of it; redirects are
// not followed (G-055).
func TestPartnersAnswersAreBounded(t *testing.T) {
	t.Parallel()
	url := remote(t)
	p := partner(t, partnerAt(url))
	for path, want := range map[string]int{"/bytes/1024": 1024, "/bytes/65536?type=text/event-stream": 65536} {
		if got, err := get(t.Context(), p, url+path); err != nil || len(got) != want {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	for path, want := range map[string]int{"/bytes/1025": 1024, "/bytes/65537?type=text/event-stream": 65536} {
		got, err := get(t.Context(), p, url+path)
		if err == nil || !strings.HasSuffix(err.Error(), "raise max_body of [gateways.a2a]") || len(got) != want {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
		isStream := strings.Contains(path, "stream") // another attempt may go on where it ended
		if refused := errors.As(err, new(*gateway.Refusal)); refused == isStream {
			t.Errorf("%s: refused for good: %v", path, refused)
		}
	}
	if _, err := get(t.Context(), p, url+"/away"); !errors.Is(err, gateway.ErrRedirect) {
		t.Errorf("a redirect: %v", err)
	}
}

// An answer that takes longer than the partner's timeout ends, as does one whose caller
// leaves.
func TestPartnersTimeout(t *testing.T) {
	t.Parallel()
	url := remote(t)
	soon := partner(t, partnerAt(url, func(p *config.Partner) { p.Timeout = 10 * time.Millisecond }))
	if _, err := get(t.Context(), soon, url+"/never"); err == nil { // be it while it connects
		t.Error("no error after the timeout")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := get(ctx, partner(t, partnerAt(url)), url+"/never"); !errors.Is(err, context.Canceled) {
		t.Errorf("without a caller: %v", err)
	}
}

// A protocol of HTTP/2 calls its partners by HTTP/2 alone (U-040).
func TestPartnersHTTP2(t *testing.T) {
	t.Parallel()
	roots := x509.NewCertPool()
	start := func(http2 bool) string {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.EnableHTTP2 = http2
		s.StartTLS()
		t.Cleanup(s.Close)
		roots.AddCert(s.Certificate())
		return s.URL
	}
	trusting := func(o *catalog.Options) {
		o.HTTP2 = true
		o.Network = func(e *egress.Options) { e.RootCAs = roots }
	}
	modern, old := start(true), start(false)
	if got, err := get(t.Context(), partner(t, partnerAt(modern), trusting), modern); err != nil || got != "HTTP/2.0" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := get(t.Context(), partner(t, partnerAt(old), trusting), old); err == nil {
		t.Errorf("without HTTP/2: %q", got)
	}
}

// A partner with an address of a protocol without HTTP has a dialer in place of a client: it
// reaches that address alone, and a private one where allow_private opens it.
func TestDialer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	address := "iacp://" + l.Addr().String()
	p := partner(t, partnerAt(address))
	if p.Client != nil || p.Dialer == nil || p.Dialer.Token() != "the-token" || p.Dialer.APIKey() != "the-key" {
		t.Fatalf("the partner is %+v", p)
	}
	c, err := p.Dialer.Dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	p = partner(t, partnerAt(address, func(p *config.Partner) { p.AllowPrivate = false }))
	if _, err := p.Dialer.Dial(ctx); err == nil || !strings.Contains(err.Error(), "allow_private = true in [gateways.a2a.partners.shop]") {
		t.Errorf("a private address: %v", err)
	}
}

// Public documents of a partner's ids are fetched at private addresses where its table allows
// that, without the credential, and from no other host (U-031, G-055).
func TestPartnerDocuments(t *testing.T) {
	t.Parallel()
	ids := []string{"did:web:lab.example:agents:*", "did:web:*.example"}
	uamp := func(allow bool, ids ...string) gateway.Partner {
		return partner(t, partnerAt("", func(p *config.Partner) { p.Protocol, p.IDs, p.AllowPrivate = &config.UAMPPartner{}, ids, allow }))
	}
	if uamp(false, ids...).Documents != nil || uamp(true, ids[1]).Documents != nil || uamp(true, "did:web:*").Documents != nil {
		t.Error("documents are fetched in a way of their own without allow_private, or a host")
	}
	own := uamp(true, ids...).Documents
	if own == nil {
		t.Fatal("there is no way to the documents")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://other.example/did.json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "[gateways.a2a.partners.shop]") {
		t.Errorf("another host: %v", err)
	}
}
