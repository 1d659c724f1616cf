package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/model"
)

func startProvider(t *testing.T) (*provider, *httptest.Server) {
	t.Helper()
	p := newProvider()
	srv := httptest.NewServer(p.handler())
	t.Cleanup(srv.Close)
	return p, srv
}

// TestProviderSpeaks: the providers' own clients, and the host's, understand what
// the benchmark's provider says, and count its tokens.
func TestProviderSpeaks(t *testing.T) {
	t.Parallel()
	_, srv := startProvider(t)
	ways := map[string]asks{
		"openai-go, streamed": officialOpenAI(srv.Client(), srv.URL, true),
		"openai-go, whole":    officialOpenAI(srv.Client(), srv.URL, false),
		"anthropic-sdk-go":    officialAnthropic(srv.Client(), srv.URL),
		"lines":               lines(srv.Client(), srv.URL),
		"host, openai":        byModel(t, model.OpenAI, srv.URL+"/v1"),
		"host, anthropic":     byModel(t, model.Anthropic, srv.URL),
	}
	for name, ask := range ways {
		for _, q := range []question{{Tokens: 1}, {Tokens: 700}, {Tokens: 3, Pause: time.Millisecond}} {
			size, err := ask(t.Context(), q)
			if err != nil || size != q.Tokens*len(token) {
				t.Errorf("%s, %+v: %d bytes, %v; want %d tokens", name, q, size, err, q.Tokens)
			}
		}
	}
}

// byModel asks as a host does, which counts the pieces as well.
func byModel(t *testing.T, provider, url string) asks {
	t.Helper()
	m, err := model.Open(model.Spec{Name: "default", Provider: provider, BaseURL: url, Model: "m"}, model.Options{Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, q question) (int, error) {
		pieces := 0
		rsp, err := m.Chat(ctx, abi.ChatRequest{Messages: []abi.ChatMessage{{Role: abi.RoleUser, Content: q.text()}}}, "key",
			func(abi.ChatPiece) error { pieces++; return nil })
		if err == nil && (pieces != q.Tokens || rsp.Finish != abi.FinishStop || rsp.Usage.InputTokens != 10) {
			t.Errorf("%s: %d pieces, %+v", provider, pieces, rsp)
		}
		return len(rsp.Text), err
	}
}

// TestProviderHolds: questions wait until they are let go, and abandoned ones do not
// count.
func TestProviderHolds(t *testing.T) {
	t.Parallel()
	p, srv := startProvider(t)
	a := &asker{ctx: t.Context(), to: srv.URL}
	t.Cleanup(a.client.CloseIdleConnections)
	asker := httptest.NewServer(a.handler())
	t.Cleanup(asker.Close)
	if err := postTo(asker.URL+"/ask?n=3", "").expect(asker.Client(), ""); err != nil {
		t.Fatal(err)
	}
	left := func() (int, error) { return number(asker.Client(), asker.URL+"/left") }
	held := func() (int, error) { return number(srv.Client(), srv.URL+"/held") }
	if err := until(3, held); err != nil {
		t.Fatal(err)
	}
	if n, err := left(); n != 3 || err != nil {
		t.Errorf("%d are left of 3, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := lines(srv.Client(), srv.URL)(ctx, question{Tokens: 1, Hold: true})
		gone <- err
	}()
	if err := until(4, held); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Error("what was given up is answered")
	}
	if err := until(3, held); err != nil {
		t.Fatal(err)
	}
	p.release()
	for what, look := range map[string]func() (int, error){"left": left, "held": held} {
		if err := until(0, look); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestProviderRefuses(t *testing.T) {
	t.Parallel()
	_, srv := startProvider(t)
	for name, body := range map[string]string{
		"no JSON":       `{`,
		"no messages":   `{"messages":[]}`,
		"no text":       `{"messages":[{"content":[]}]}`,
		"two blocks":    `{"messages":[{"content":[{"text":"{}"},{"text":"{}"}]}]}`,
		"no question":   `{"messages":[{"content":"hello"}]}`,
		"no tokens":     `{"messages":[{"content":"{\"tokens\":0}"}]}`,
		"half of one":   `{"messages":[{"content":"{\"tokens\":1"}]}`,
		"too many":      `{"messages":[{"content":"{\"tokens\":100001}"}]}`,
		"a large whole": `{"messages":[{"content":"` + strings.Repeat("x", maxQuestion) + `"}]}`,
	} {
		rsp, err := srv.Client().Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = rsp.Body.Close()
		if rsp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", name, rsp.Status)
		}
	}
	if _, err := officialOpenAI(srv.Client(), srv.URL, true)(t.Context(), question{}); err == nil {
		t.Error("a question for no tokens is answered")
	}
}

// TestProviderSecure: only a client that trusts the provider's certificate is
// answered over TLS.
func TestProviderSecure(t *testing.T) {
	t.Parallel()
	mux := newProvider().handler()
	end, err := secure(mux)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	at, remove, err := trust(&child{url: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	pem, err := os.ReadFile(strings.TrimPrefix(at.env, "SSL_CERT_FILE="))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate: %q", pem)
	}
	for name, roots := range map[string]*x509.CertPool{"trusts": pool, "does not": x509.NewCertPool()} {
		cl := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		t.Cleanup(cl.CloseIdleConnections)
		size, err := lines(cl, at.url)(t.Context(), question{Tokens: 2})
		if ok := err == nil && size == 2*len(token); ok != (name == "trusts") {
			t.Errorf("%s: %d bytes, %v", name, size, err)
		}
	}
	srv.Close()
	if _, _, err := trust(&child{url: srv.URL}); err == nil {
		t.Error("a provider that is gone is trusted")
	}
}

// TestAskerFails: the next look reports what an asker could not do.
func TestAskerFails(t *testing.T) {
	t.Parallel()
	_, srv := startProvider(t)
	srv.Close()
	a := &asker{ctx: t.Context(), to: srv.URL}
	a.left.Add(1)
	a.ask()
	asker := httptest.NewServer(a.handler())
	t.Cleanup(asker.Close)
	if n, err := number(asker.Client(), asker.URL+"/left"); err == nil {
		t.Errorf("%d are left of a provider that is gone", n)
	}
	if err := postTo(asker.URL+"/ask?n=x", "").expect(asker.Client(), ""); err == nil {
		t.Error("x is a number")
	}
}
