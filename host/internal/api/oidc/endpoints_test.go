package oidc_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/oidc"
)

// endpointsServer is the pair of endpoints of MAIL's reference: the key "role:id"
// belongs to that principal.
type endpointsServer struct {
	*httptest.Server
	mu            sync.Mutex
	login, info   func(w http.ResponseWriter, r *http.Request) bool
	logins, infos atomic.Int64
	clock         time.Time
}

func newEndpointsServer(t *testing.T) *endpointsServer {
	d := &endpointsServer{clock: now}
	bearer := func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		login, info := d.login, d.info
		d.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		key := bearer(r)
		switch r.Method + " " + r.URL.Path {
		case "POST /login":
			d.logins.Add(1)
			if len(body) > 0 {
				t.Errorf("the login has a body: %q", body)
			}
			if login != nil && login(w, r) {
				return
			}
			if !strings.Contains(key, ":") {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprintf(w, `{"token":"temporary-%s"}`, key)
		case "GET /info":
			d.infos.Add(1)
			if info != nil && info(w, r) {
				return
			}
			role, id, _ := strings.Cut(strings.TrimPrefix(key, "temporary-"), ":")
			fmt.Fprintf(w, `{"role":%q,"id":%q,"api_key":%q}`, role, id, key)
		default:
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *endpointsServer) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

func (d *endpointsServer) move(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = d.clock.Add(by)
}

func (d *endpointsServer) set(login, info func(w http.ResponseWriter, r *http.Request) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.login, d.info = login, info
}

func (d *endpointsServer) endpoints(t *testing.T, ttl time.Duration) *oidc.Endpoints {
	t.Helper()
	e, err := oidc.NewEndpoints(oidc.EndpointsOptions{
		Login: d.URL + "/login", TokenInfo: d.URL + "/info", CacheTTL: ttl, Now: d.now,
		Mapping: oidc.Mapping{Tenant: "default", Tenants: []string{"default"}, Agents: []string{"depot"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	d := newEndpointsServer(t)
	e := d.endpoints(t, 30*time.Second)
	for token, want := range map[string]string{
		"user:alice": "default/user:alice", "admin:ada": "default/admin:ada", "agent:depot": "default/agent:depot",
		"user:a@b": "default/user:a~40b",
	} {
		for range 3 {
			if p, err := e.Authenticate(t.Context(), token); err != nil || p.String() != want {
				t.Errorf("%s: %v, %v", token, p, err)
			}
		}
	}
	if l, i := d.logins.Load(), d.infos.Load(); l != 4 || i != 4 {
		t.Errorf("%d logins and %d infos for 4 keys", l, i)
	}
	d.move(30 * time.Second)
	if _, err := e.Authenticate(t.Context(), "user:alice"); err != nil || d.logins.Load() != 5 {
		t.Errorf("after the cache's time: %v, %d logins", err, d.logins.Load())
	}
}

func TestEndpointsRefuse(t *testing.T) {
	t.Parallel()
	d := newEndpointsServer(t)
	e := d.endpoints(t, 30*time.Second)
	refused := func(token, detail, reason string) {
		t.Helper()
		_, err := e.Authenticate(t.Context(), token)
		var unknown *auth.Unknown
		if !errors.As(err, &unknown) || unknown.Detail != detail || !strings.Contains(unknown.Reason, reason) || strings.Contains(unknown.Reason, token) {
			t.Errorf("%s: %v, want %q because of %q", token, err, detail, reason)
		}
	}
	refused("nobody", "invalid API key", "/login answers 401")
	refused("nobody", "invalid API key", "/login answers 401")
	if n := d.logins.Load(); n != 1 {
		t.Errorf("%d logins for one wrong key", n)
	}
	d.move(5 * time.Second)
	refused("nobody", "invalid API key", "/login answers 401")
	if n := d.logins.Load(); n != 2 {
		t.Errorf("%d logins after a while", n)
	}
	refused("operator:root", "invalid token", "no role")
	refused("user:", "invalid token", "names nobody")
	d.set(nil, func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(401); return true })
	refused("user:bob", "invalid token", "/info answers 401")
}

func TestEndpointsUnavailable(t *testing.T) {
	t.Parallel()
	say := func(status int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			fmt.Fprint(w, text)
			return true
		}
	}
	redirect := func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		return true
	}
	hang := func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		login, info func(http.ResponseWriter, *http.Request) bool
		want        string
	}{
		"login 500":      {say(500, ""), nil, "status 500"},
		"login 403":      {say(403, ""), nil, "status 403"},
		"login redirect": {redirect, nil, "status 307"},
		"login text":     {say(200, "hello"), nil, "not the JSON"},
		"login empty":    {say(200, "{}"), nil, "no token"},
		"login cut":      {hang, nil, "EOF"},
		"bad token":      {say(200, `{"token":"a\nb"}`), nil, "invalid header"},
		"info 500":       {nil, say(500, ""), "status 500"},
		"info list":      {nil, say(200, "[]"), "not the JSON"},
		"info huge":      {nil, say(200, strings.Repeat(" ", 2<<20)), "more than"},
	} {
		d := newEndpointsServer(t)
		d.set(c.login, c.info)
		e := d.endpoints(t, 30*time.Second)
		for range 2 {
			_, err := e.Authenticate(t.Context(), "user:alice")
			var gone *auth.Unavailable
			if !errors.As(err, &gone) || gone.Backend != "[auth.endpoints]" || gone.Retry <= 0 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		d.set(nil, nil)
		if _, err := e.Authenticate(t.Context(), "user:alice"); err != nil {
			t.Errorf("%s, mended: %v", name, err)
		}
	}
}

// Callers with one key share one round trip.
func TestEndpointsTogether(t *testing.T) {
	t.Parallel()
	d := newEndpointsServer(t)
	arrived, gate := make(chan struct{}), make(chan struct{})
	d.set(func(http.ResponseWriter, *http.Request) bool { close(arrived); <-gate; return false }, nil)
	e := d.endpoints(t, 30*time.Second)
	var wg sync.WaitGroup
	ask := func() {
		if p, err := e.Authenticate(t.Context(), "user:alice"); err != nil || p.ID != "alice" {
			t.Errorf("%v, %v", p, err)
		}
	}
	wg.Go(ask)
	<-arrived
	for range 50 {
		wg.Go(ask)
	}
	close(gate)
	wg.Wait()
	if n := d.logins.Load(); n != 1 {
		t.Errorf("%d logins", n)
	}
}

func TestNewEndpointsRefuses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://auth.example.com/", "ftp://127.0.0.1/", "auth", ""} {
		if _, err := oidc.NewEndpoints(oidc.EndpointsOptions{Login: address, TokenInfo: "https://auth.example.com/"}); err == nil || !strings.Contains(err.Error(), "login") {
			t.Errorf("login %q: %v", address, err)
		}
		if _, err := oidc.NewEndpoints(oidc.EndpointsOptions{Login: "https://auth.example.com/", TokenInfo: address}); err == nil || !strings.Contains(err.Error(), "token_info") {
			t.Errorf("token_info %q: %v", address, err)
		}
	}
}
