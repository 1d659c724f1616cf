package catalog_test

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

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/turn/egress"
)

// tokenServer gives tokens, each another one, and counts who asks. answer replaces what it does.
type tokenServer struct {
	t      *testing.T
	asked  atomic.Int32
	answer atomic.Pointer[http.HandlerFunc]
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.asked.Add(1)
	id, secret, _ := r.BasicAuth()
	if r.ParseForm() != nil || r.Method != http.MethodPost || r.URL.Path != "/token" || id != "hive+one" || secret != "s%3Acret" ||
		r.PostForm.Encode() != "grant_type=client_credentials&scope=uamp+tell" || r.Header.Get("X-Api-Key") != "" {
		s.t.Errorf("%s %s %v as %s %s", r.Method, r.URL, r.Form, id, secret)
	}
	w.Header().Set("Content-Type", "application/json")
	if answer := s.answer.Load(); answer != nil {
		(*answer)(w, r)
		return
	}
	_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"bearer","expires_in":3600}`, n)
}

// answers lets the server answer with a status and a body.
func (s *tokenServer) answers(status int, body string, header ...string) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	s.answer.Store(&answer)
}

// authorized is a partner whose tokens come from a server.
func authorized(t *testing.T, url string, change ...func(*config.Partner)) (gateway.Partner, *tokenServer) {
	t.Helper()
	tokens := &tokenServer{t: t}
	server := httptest.NewServer(tokens)
	t.Cleanup(server.Close)
	oauth := config.OAuth{TokenURL: server.URL + "/token", ClientID: "hive one", ClientSecret: "s:cret", Scope: "uamp tell"}
	return partner(t, partnerAt(url, append([]func(*config.Partner){func(p *config.Partner) {
		p.AuthToken, p.Protocol = "", &config.UAMPPartner{OAuth: oauth}
	}}, change...)...)), tokens
}

// TestClientCredentials (U-041): a partner is shown a token that its endpoint gives for the
// credentials of a client. It is kept until shortly before its end, and asked for once at a time.
func TestClientCredentials(t *testing.T) {
	t.Parallel()
	url := remote(t)
	p, tokens := authorized(t, url)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := get(t.Context(), p, url+"/"); err != nil || got != "Bearer token-1 the-key own" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := tokens.asked.Load(); n != 1 {
		t.Errorf("%d tokens", n)
	}
	p, tokens = authorized(t, url)
	asked := int32(0)
	for _, c := range []struct {
		seconds int
		asked   int32
	}{{0, 3}, {30, 1}} {
		tokens.answers(http.StatusOK, fmt.Sprintf(`{"access_token":"short","token_type":"Bearer","expires_in":%d}`, c.seconds))
		for range 3 {
			if got, err := get(t.Context(), p, url+"/"); err != nil || got != "Bearer short the-key own" {
				t.Errorf("%q, %v", got, err)
			}
		}
		if asked += c.asked; tokens.asked.Load() != asked {
			t.Errorf("%d tokens in all, with those of %d s, want %d", tokens.asked.Load(), c.seconds, asked)
		}
	}
}

// TestClientCredentialsRenewed (U-041): a token that the partner refuses is replaced once, and the
// request is sent again with its body. What goes on being refused is the partner's answer.
func TestClientCredentialsRenewed(t *testing.T) {
	t.Parallel()
	var good atomic.Value
	good.Store("Bearer token-2")
	var bodies atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || string(text) != "a message" {
			t.Errorf("%q, %v", text, err)
		}
		bodies.Add(1)
		if r.Header.Get("Authorization") != good.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	p, tokens := authorized(t, server.URL)
	post := func(want, sent, asked int) {
		t.Helper()
		before := bodies.Load()
		resp, err := p.Client.Post(server.URL, "text/plain", strings.NewReader("a message"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if n := int(bodies.Load() - before); resp.StatusCode != want || n != sent || int(tokens.asked.Load()) != asked {
			t.Errorf("%d after %d requests and %d tokens, want %d, %d and %d", resp.StatusCode, n, tokens.asked.Load(), want, sent, asked)
		}
	}
	post(http.StatusOK, 2, 2)
	post(http.StatusOK, 1, 2)
	good.Store("none")
	post(http.StatusUnauthorized, 2, 3)
	post(http.StatusUnauthorized, 1, 3)
	good.Store("Bearer token-3")
	post(http.StatusOK, 1, 3)
	good.Store("Bearer token-4")
	tokens.answers(http.StatusServiceUnavailable, "")
	for _, when := range []string{"as it is refused", "without a token"} {
		resp, err := p.Client.Post(server.URL, "text/plain", strings.NewReader("a message"))
		if err == nil {
			_ = resp.Body.Close()
		}
		if got := gateway.CarriedAfter(err); got.State != gateway.Later || tokens.asked.Load() != 4 {
			t.Errorf("%s: %+v after %d tokens", when, got, tokens.asked.Load())
		}
	}
}

// TestClientCredentialsReplaced (U-041): requests whose common token the partner refuses all wait
// while it has no replacement: the later refusal is no answer either.
func TestClientCredentialsReplaced(t *testing.T) {
	t.Parallel()
	held, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(held)
			<-release
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	p, tokens := authorized(t, server.URL)
	later := make(chan error, 1)
	go func() {
		_, err := get(t.Context(), p, server.URL+"/held")
		later <- err
	}()
	<-held
	tokens.answers(http.StatusServiceUnavailable, "")
	_, first := get(t.Context(), p, server.URL+"/")
	close(release)
	for i, err := range []error{first, <-later} {
		if !errors.Is(err, gateway.ErrBusy) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// TestClientCredentialsFail (U-041): without a token nothing is sent. The message waits, with the
// reason and the table that an operator looks at, and the endpoint is not asked for each.
func TestClientCredentialsFail(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	url := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	t.Cleanup(url.Close)
	for name, c := range map[string]struct {
		status     int
		body, want string
		header     []string
	}{
		"refused":      {401, `{"error":"invalid_client"}`, `answers 401 "invalid_client"`, nil},
		"busy":         {503, "", "answers 503", []string{"Retry-After", "20"}},
		"a redirect":   {307, "", "write where it is into token_url", []string{"Location", "/elsewhere"}},
		"no JSON":      {200, "token", "not the JSON of a token", nil},
		"another type": {200, `{"access_token":"a","token_type":"mac"}`, `of type "mac"`, nil},
		"no token":     {200, `{"token_type":"Bearer"}`, "characters", nil},
		"a line break": {200, `{"access_token":"a\r\nX-Own: b","token_type":"Bearer"}`, "characters", nil},
		"too much":     {200, `{"access_token":"` + strings.Repeat("a", 64<<10) + `","token_type":"Bearer"}`, "too large", nil},
	} {
		p, tokens := authorized(t, url.URL)
		tokens.answers(c.status, c.body, c.header...)
		for range 3 {
			_, err := get(t.Context(), p, url.URL)
			if !errors.Is(err, gateway.ErrBusy) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "token_url of [gateways.a2a.partners.shop]") || strings.Contains(err.Error(), "cret") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := tokens.asked.Load(); n != 1 {
			t.Errorf("%s: the endpoint is asked %d times", name, n)
		}
	}
	p, tokens := authorized(t, url.URL, func(p *config.Partner) { p.AllowPrivate = false })
	var denied *abi.Error
	if _, err := get(t.Context(), p, url.URL); !errors.As(err, &denied) || denied.Reason != egress.ReasonAddress || tokens.asked.Load() > 0 {
		t.Errorf("a private address: %v", err)
	}
	if n := called.Load(); n > 0 {
		t.Errorf("the partner is called %d times", n)
	}
}
