package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
	"skep/host/internal/turn/egress"
)

// callee is a server of HTTP/2 without TLS, which returns the bytes of calls at /, and tells what
// the caller has shown.
func callee(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Shown", r.Proto+" "+r.Header.Get("Authorization"))
		_ = http.NewResponseController(w).Flush()
		piece := make([]byte, 4<<10)
		for {
			n, err := r.Body.Read(piece)
			if _, failed := w.Write(piece[:n]); failed != nil || err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
	})
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections() // calls stay open
		s.Close()
	})
	return s.URL
}

// call begins a call of gRPC.
func call(ctx context.Context, p gateway.Partner, path string) (io.WriteCloser, *http.Response, error) {
	in, out := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+path, in)
	if err != nil {
		return nil, nil, err
	}
	req.ContentLength = -1
	req.Header.Set("Content-Type", "application/grpc")
	resp, err := p.Client.Do(req)
	return out, resp, err
}

// TestPartnerCalls (U-055, U-057): a call of gRPC that goes on sending shows the partner's
// credential, and goes on for longer than an answer may take, with more bytes than one may have.
// It has the bounds of addresses, redirects and silence that every request has.
func TestPartnerCalls(t *testing.T) {
	two := func(o *catalog.Options) { o.HTTP2 = true }
	url := callee(t)
	p := partner(t, partnerAt(url, func(p *config.Partner) { p.Timeout = 200 * time.Millisecond }), two)
	out, resp, err := call(t.Context(), p, "/")
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); { // a slow machine is silent, too
		out, resp, err = call(t.Context(), p, "/")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Shown"); got != "HTTP/2.0 Bearer the-token" {
		t.Errorf("the partner sees %q", got)
	}
	message, got := bytes.Repeat([]byte("x"), 512), make([]byte, 512)
	for began := time.Now(); time.Since(began) < 2*p.Timeout; {
		if _, err := out.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, got); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := call(t.Context(), p, "/never"); err == nil {
		t.Error("a call without a response goes on")
	}
	p = partner(t, partnerAt(url), two)
	if _, resp, err := call(t.Context(), p, "/away"); err != nil || resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("a redirect: %v, %v", resp, err)
	}
	closed := partner(t, partnerAt(url, func(p *config.Partner) { p.AllowPrivate = false }), two)
	var refused *abi.Error
	if _, _, err := call(t.Context(), closed, "/"); !errors.As(err, &refused) || refused.Reason != egress.ReasonAddress {
		t.Errorf("a private address: %v", err)
	}
}
