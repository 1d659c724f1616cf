package crash_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"skep/host/internal/hosttest"
)

// cuttingProxy stands between hive and the MCP gateway of depot. It cuts calls as its cuts say, in
// their order, and then hands on all.
type cuttingProxy struct {
	cuts []func()
	next http.Handler

	mu  sync.Mutex
	ids []string // of calls
}

// ServeHTTP implements [http.Handler].
func (p *cuttingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its host is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, after, isCall := bytes.Cut(body, []byte(`"skep/id":"`))
	if !isCall {
		p.next.ServeHTTP(w, r)
		return
	}
	id, _, _ := bytes.Cut(after, []byte(`"`))
	p.mu.Lock()
	n := len(p.ids)
	p.ids = append(p.ids, string(id))
	p.mu.Unlock()
	if n < len(p.cuts) {
		p.next.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
		p.cuts[n]()
		panic(http.ErrAbortHandler)
	}
	p.next.ServeHTTP(w, r)
}

// TestKillToolServer: the host behind an MCP tool answers a call, the answer is lost, and the host is
// killed; the connection of the repeat breaks, too. The host has declared that it finds repeats, so
// the call is made until its answer comes: it has one, and was carried out once.
func TestKillToolServer(t *testing.T) {
	t.Parallel()
	var e *hosttest.Everywhere
	cut := func() {}
	p := &cuttingProxy{cuts: []func(){func() { e.Depot.Kill() }, func() { e.Depot.Start() }, cut, cut}}
	p.next = &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}, // of this test alone
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: e.Depot.Addr})
			r.Out.Host = "localhost"
		},
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	e = hosttest.StartEverywhere(t, "https://localhost:9443/mcp", server.URL+"/mcp")
	if err := askEverywhere(t.Context(), e.Client("a-key-to-try-on-this-machine", ""), "question 0;"); err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ids) < 5 || len(slices.Compact(p.ids)) != 1 {
		t.Errorf("the calls have the ids %q", p.ids)
	}
	got := map[string]int{}
	for name, p := range map[string]*hosttest.Process{"hive": e.Hive, "depot": e.Depot} {
		p.Kill()
		s := hosttest.OpenStore(t, p.Data())
		countMail(t, s, name, got)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	checkCounts(t, got, 1)
}
