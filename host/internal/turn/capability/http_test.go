package capability

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// site is a server on loopback that remembers what came.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string // of the requests, in order
	seen []http.Header
}

func newSite(t *testing.T) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
		s.seen = append(s.seen, r.Header.Clone())
		s.mu.Unlock()
		_, _ = fmt.Fprintf(w, "<%s %s>", r.Method, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

// online is a host whose entrypoint may ask a site.
func online(t *testing.T, s *site, turn func(v *visit)) *host {
	h := oneAgent(t, turn)
	g, err := egress.ParseGrant(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := egress.NewSecret("key", "sesame", "X-Key", s.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.web = egress.New(egress.Options{})
	h.allow.HTTP = egress.Policy{Table: "[agents.boss]", Grants: []egress.Grant{g}, Secrets: []egress.Secret{secret}, AllowPrivate: true}
	return h
}

func fetch(url string) string {
	raw, _ := json.Marshal(abi.FetchRequest{Method: "GET", URL: url})
	return string(raw)
}

// A request goes out with its key and the agent's secret, and is counted.
func TestFetch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := online(t, s, func(v *visit) {
		var rsp abi.FetchResponse
		_ = json.Unmarshal([]byte(v.call(abi.OpHTTPFetch, fetch(s.URL+"/one"))), &rsp)
		v.tell([]string{fmt.Sprint(rsp.Status), rsp.Body, v.call(abi.OpHTTPFetch, fetch(s.URL+"/two"))})
	})
	h.start(0, false)
	defer h.stop()
	got := h.told(t)
	if got[0] != "200" || got[1] != "<GET /one>" || !strings.Contains(got[2], `"body":"<GET /two>"`) {
		t.Errorf("told %q", got)
	}
	keys := s.requests()
	if len(keys) != 2 || len(keys[0]) != 64 || keys[0] == keys[1] || s.seen[0].Get("X-Key") != "sesame" {
		t.Errorf("keys %q, headers %v", keys, s.seen[0])
	}
	snap, err := h.rt.Task(context.Background(), h.key())
	if u := snap.Task.Usage; err != nil || u.Fetches != 2 || u.FetchBytes < int64(2*len(fetch(s.URL+"/one"))) {
		t.Errorf("usage %+v, %v", u, err)
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil || rec.End.Usage.Fetches != 2 {
		t.Errorf("recorded usage %+v, %v", rec.End, err)
	}
}

// What is not granted is refused before anything is written, and the text says
// what to write where.
func TestFetchRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	private := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for name, c := range map[string]struct {
		change func(*host)
		url    string
		want   string
	}{
		"no grant":       {func(h *host) { h.allow.HTTP.Grants = nil }, s.URL, fmt.Sprintf("DENIED: GET %s/ is not granted; it takes %q added to allow.http in [agents.boss]", s.URL, "GET "+s.URL+"/")},
		"another origin": {func(*host) {}, private, fmt.Sprintf("DENIED: GET %s/ is not granted; it takes %q added to allow.http in [agents.boss]", private, "GET "+private+"/")},
		"private":        {func(h *host) { h.allow.HTTP.AllowPrivate = false }, s.URL, "DENIED: 127.0.0.1 is not a public address (loopback); it takes allow = { http_private = true } in [agents.boss]"},
		"no URL":         {func(*host) {}, "nowhere", "INVALID: "},
	} {
		h := online(t, s, func(v *visit) { v.tell([]string{v.call(abi.OpHTTPFetch, fetch(c.url))}) })
		c.change(h)
		h.start(0, false)
		if got := h.told(t); !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if writes := h.store.n.Load(); (writes == 2) != (name != "private") {
			t.Errorf("%s: %d durable writes", name, writes)
		}
		h.stop()
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests got out", n)
	}
}

func TestFetchNotOffered(t *testing.T) {
	t.Parallel()
	o := bareOps(t, builtinOps())
	if _, fault := o.Call(t.Context(), abi.OpHTTPFetch, []byte(fetch("https://a.test"))); fault == nil || fault.Code != abi.CodeUnsupported {
		t.Error(fault)
	}
}

// A request whose answer was lost is sent once more under its key; if the operator forbids
// that, the agent gets in_doubt. Either way the cost of the first one counts.
func TestFetchInDoubt(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		s := newSite(t)
		h := online(t, s, func(v *visit) {
			v.tell([]string{v.call(abi.OpHTTPFetch, fetch(s.URL+"/one")), v.call(abi.OpHTTPFetch, fetch(s.URL+"/two"))})
		})
		h.allow.RetryInDoubt = again
		h.start(5, false) // a post, intent, answer, intent; not the second answer
		_, _ = h.ask()
		h.stop()
		h.start(0, false)
		got, keys := h.told(t), s.requests()
		if !strings.Contains(got[0], "<GET /one>") {
			t.Errorf("the recorded answer: %q", got[0])
		}
		switch {
		case again && (len(keys) != 3 || keys[1] != keys[2] || !strings.Contains(got[1], "<GET /two>")):
			t.Errorf("again: %q, %q", got, keys)
		case !again && (len(keys) != 2 || !strings.HasPrefix(got[1], "UNAVAILABLE: the host stopped before the answer came")):
			t.Errorf("in doubt: %q, %q", got, keys)
		}
		if snap, err := h.rt.Task(context.Background(), h.key()); err != nil || snap.Task.Usage.Fetches != map[bool]int64{true: 2, false: 1}[again] {
			t.Errorf("usage %+v, %v", snap.Task.Usage, err)
		}
		h.stop()
	}
}

// A turn that is discarded has still spent what it has spent.
func TestFetchOfADiscardedTurn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := online(t, s, nil)
	h.modules["boss"] = trapping{guest{"m1", func(v *visit) { v.call(abi.OpHTTPFetch, fetch(s.URL)) }}}
	h.start(0, false)
	defer h.stop()
	if a, err := h.ask(); err != nil || a.Subject != mail.SubjectAgentError {
		t.Fatal(a, err)
	}
	if snap, err := h.rt.Task(context.Background(), h.key()); err != nil || snap.Task.Usage.Fetches != 1 || snap.Task.State != swarm.StateFailed {
		t.Errorf("%+v, %v", snap.Task.Usage, err)
	}
}

// An agent learns of the secrets it is granted, and of no others.
func TestSecretExists(t *testing.T) {
	t.Parallel()
	o := bareOps(t, builtinOps())
	o.allow.Secrets = []string{"key"}
	for req, want := range map[string]string{`{"name":"key"}`: `{"exists":true}`, `{"name":"other"}`: `{"exists":false}`, `{}`: `{"exists":false}`} {
		if got, fault := o.Call(t.Context(), abi.OpSecretExists, []byte(req)); string(got) != want {
			t.Errorf("%s: %s, %v", req, got, fault)
		}
	}
	if _, fault := o.Call(t.Context(), abi.OpSecretExists, []byte(`{"key":"key"}`)); fault == nil || fault.Code != abi.CodeInvalid {
		t.Error(fault)
	}
}
