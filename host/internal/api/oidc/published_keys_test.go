package oidc_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
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

// provider is an issuer that publishes its keys.
type provider struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(w http.ResponseWriter, r *http.Request) bool
	keys   string
	asked  atomic.Int64

	clock time.Time
}

func newProvider(t *testing.T) *provider {
	p := &provider{clock: now, keys: set(t, jwk("d", "", ring().ed))}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		answer, keys := p.answer, p.keys
		p.mu.Unlock()
		if r.URL.Path == "/keys" {
			p.asked.Add(1)
		}
		switch {
		case answer != nil && answer(w, r):
		case r.URL.Path == "/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
		case r.URL.Path == "/keys":
			fmt.Fprint(w, keys)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) set(keys string, answer func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys, p.answer = keys, answer
}

func (p *provider) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock
}

func (p *provider) move(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock = p.clock.Add(d)
}

func (p *provider) jwt(t *testing.T, address string) *oidc.JWT {
	return newJWT(t, func(o *oidc.JWTOptions) { o.Keys, o.URL, o.Issuer, o.Now = "", address, p.URL, p.now })
}

func (p *provider) token(t *testing.T, kid string, key any) string {
	return sign(t, "EdDSA", kid, key, nil, good(claims{"iss": p.URL, "exp": now.Unix() + 1e6}))
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for _, address := range []string{"", p.URL + "/keys"} {
		j := p.jwt(t, address)
		for range 3 {
			if who, err := j.Authenticate(t.Context(), p.token(t, "d", ring().ed)); err != nil || who.String() != "default/user:alice" {
				t.Errorf("%q: %v, %v", address, who, err)
			}
		}
	}
	if n := p.asked.Load(); n != 2 {
		t.Errorf("the keys were fetched %d times, want once for each", n)
	}
}

// A new key is found by its id; made-up ids cause no fetch.
func TestRotation(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	j := p.jwt(t, "")
	_, fresh, _ := ed25519.GenerateKey(rand.Reader)
	check := func(kid string, key any, want bool) {
		t.Helper()
		if who, err := j.Authenticate(t.Context(), p.token(t, kid, key)); (err == nil) != want || err != nil && !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("key %s: %v, %v", kid, who, err)
		}
	}
	check("d", ring().ed, true)
	// What the last fetch did not bring is unknown.
	for i := range 100 {
		check(fmt.Sprint("made up ", i), ring().ed, false)
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("made-up ids made it fetch %d times", n)
	}
	p.move(30 * time.Second)
	p.set(set(t, jwk("d", "", ring().ed), jwk("new", "", fresh)), nil)
	check("new", fresh, true)
	check("d", ring().ed, true)
	p.move(30 * time.Second)
	check("made up", ring().ed, false)
	// The old key is taken back.
	p.set(set(t, jwk("new", "", fresh)), nil)
	check("d", ring().ed, true)
	p.move(11 * time.Minute)
	check("d", ring().ed, false)
	check("new", fresh, true)
	if n := p.asked.Load(); n != 4 {
		t.Errorf("fetched %d times, want 4", n)
	}
}

// A key id that the last fetch did not bring is unknown until the next. While the
// issuer is down, that cannot be decided.
func TestUnknownKeyID(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	j := p.jwt(t, "")
	_, fresh, _ := ed25519.GenerateKey(rand.Reader)
	who := func(kid string, key any) error {
		_, err := j.Authenticate(t.Context(), p.token(t, kid, key))
		return err
	}
	if err := who("made up", ring().ed); !errors.Is(err, auth.ErrUnknown) || !strings.Contains(err.Error(), "no key of its id") {
		t.Errorf("with the first look: %v", err)
	}
	p.set(set(t, jwk("d", "", ring().ed), jwk("new", "", fresh)), nil)
	p.move(29 * time.Second)
	if err := who("new", fresh); !errors.Is(err, auth.ErrUnknown) || p.asked.Load() != 1 {
		t.Errorf("29 seconds after a look: %v; %d looks", err, p.asked.Load())
	}
	p.move(time.Second)
	if err := who("new", fresh); err != nil || p.asked.Load() != 2 {
		t.Errorf("30 seconds after a look: %v; %d looks", err, p.asked.Load())
	}
	// A look in vain tells nothing, and is not repeated at once.
	p.set("", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true })
	for _, after := range []time.Duration{30 * time.Second, 10 * time.Second} {
		p.move(after)
		var wait *auth.Unavailable
		if err := who("newer", fresh); !errors.As(err, &wait) || !strings.Contains(err.Error(), "status 500") || wait.Retry <= 0 {
			t.Errorf("while the issuer is gone: %v", err)
		} else if after == 10*time.Second && wait.Retry != 20*time.Second {
			t.Errorf("come again in %v, want 20s", wait.Retry)
		}
	}
	if err := who("new", fresh); err != nil {
		t.Errorf("a key that is there: %v", err)
	}
}

// While the issuer is gone its last keys hold, for a day.
func TestIssuerGone(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	j := p.jwt(t, "")
	token := p.token(t, "d", ring().ed)
	if _, err := j.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	p.set("", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true })
	p.move(23 * time.Hour)
	if _, err := j.Authenticate(t.Context(), token); err != nil {
		t.Errorf("after 23 hours: %v", err)
	}
	p.move(time.Hour)
	var gone *auth.Unavailable
	if _, err := j.Authenticate(t.Context(), token); !errors.As(err, &gone) || gone.Backend != "[auth.jwt]" || gone.Retry <= 0 || !strings.Contains(err.Error(), "status 500") {
		t.Errorf("after a day: %v", err)
	}
}

// Callers who waited for an issuer that takes all its time are told so, and do not each
// wait for one more attempt.
func TestSlowIssuerIsAskedOnce(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	j := p.jwt(t, p.URL+"/keys")
	p.set("", func(w http.ResponseWriter, _ *http.Request) bool {
		p.move(5 * time.Second) // the most that a fetch may take
		w.WriteHeader(500)
		return true
	})
	for range 3 {
		var slow *auth.Unavailable
		if _, err := j.Authenticate(t.Context(), p.token(t, "d", ring().ed)); !errors.As(err, &slow) || slow.Retry <= 0 {
			t.Errorf("Authenticate() = %v", err)
		}
	}
	if asked := p.asked.Load(); asked != 1 {
		t.Errorf("the issuer was asked %d times, want once", asked)
	}
}

func TestBadProvider(t *testing.T) {
	t.Parallel()
	about := func(issuer, keys string) func(*provider) func(http.ResponseWriter, *http.Request) bool {
		return func(p *provider) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/keys" {
					return false
				}
				_ = json.NewEncoder(w).Encode(map[string]string{
					"issuer": strings.ReplaceAll(issuer, "SELF", p.URL), "jwks_uri": strings.ReplaceAll(keys, "SELF", p.URL)})
				return true
			}
		}
	}
	keys := func(text string) func(*provider) func(http.ResponseWriter, *http.Request) bool {
		return func(*provider) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/keys" {
					return false
				}
				fmt.Fprint(w, text)
				return true
			}
		}
	}
	private, _ := json.Marshal(map[string]any{"keys": []any{map[string]string{"kty": "oct", "kid": "d", "k": "YSBzaGFyZWQgc2VjcmV0IG9mIDMyIGJ5dGVzLCB5ZXM"}}})
	for name, c := range map[string]struct {
		answer func(*provider) func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"another's description": {about("https://evil.example", "SELF/keys"), "letter for letter"},
		"no address":            {about("SELF", ""), "no jwks_uri"},
		"plain address":         {about("SELF", "http://keys.example.com/"), "must begin with https://"},
		"a file":                {about("SELF", "file:///etc/passwd"), "is no URL"},
		"no JSON":               {keys("hello"), "not the JSON"},
		"no set":                {keys("[]"), "not a JSON Web Key Set"},
		"no keys":               {keys(`{"keys":[]}`), "no key"},
		"a published secret":    {keys(string(private)), "no key"},
		"endless":               {keys(`{"keys":["` + strings.Repeat("x", 2<<20)), "more than 1048576 bytes"},
		"a redirect": {func(*provider) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/keys" {
					http.Redirect(w, r, "/elsewhere", http.StatusFound)
					return true
				}
				return false
			}
		}, "status 302"},
	} {
		p := newProvider(t)
		p.set(p.keys, c.answer(p))
		j := p.jwt(t, "")
		var gone *auth.Unavailable
		if _, err := j.Authenticate(t.Context(), p.token(t, "d", ring().ed)); !errors.As(err, &gone) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		// Not every caller causes a request.
		before := p.asked.Load()
		for range 10 {
			_, _ = j.Authenticate(t.Context(), p.token(t, "d", ring().ed))
		}
		if n := p.asked.Load() - before; n != 0 {
			t.Errorf("%s: it is asked %d times more", name, n)
		}
		p.set(set(t, jwk("d", "", ring().ed)), nil)
		p.move(5 * time.Second)
		if _, err := j.Authenticate(t.Context(), p.token(t, "d", ring().ed)); err != nil {
			t.Errorf("%s, mended: %v", name, err)
		}
	}
}

// Concurrent callers share one request, and one that leaves does not cancel it.
func TestTogether(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	j := p.jwt(t, "")
	token := p.token(t, "d", ring().ed)
	gone, leave := context.WithCancel(t.Context())
	leave()
	var wg sync.WaitGroup
	for i := range 16 {
		ctx := t.Context()
		if i%2 == 0 {
			ctx = gone
		}
		wg.Go(func() {
			if _, err := j.Authenticate(ctx, token); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := p.asked.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}
