package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/turn/egress"
)

// Limits of tokens.
const (
	maxTokenAnswer   = 64 << 10 // bytes
	tokenTimeout     = 10 * time.Second
	tokenLeeway      = 30 * time.Second // before its end a token is renewed, at most half its life
	defaultTokenLife = 5 * time.Minute  // of a token without expires_in
	maxTokenLife     = 24 * time.Hour
	// renewPause is the time between two tokens in place of ones that the partner refuses.
	renewPause = time.Minute
	// tokenPause is the time after a failure in which the endpoint is not asked again, up to
	// maxTokenPause where it names one.
	tokenPause    = 5 * time.Second
	maxTokenPause = 5 * time.Minute
)

// tokenSource gets the bearer tokens of a partner from its token endpoint, by the credentials of a
// client (https://www.rfc-editor.org/rfc/rfc6749#section-4.4). It is safe for concurrent use.
type tokenSource struct {
	client *http.Client
	from   config.OAuth
	table  string // of the partner
	asks   singleflight.Group

	mu       sync.Mutex
	token    string
	obtained time.Time
	expires  time.Time
	// renewed means that the token replaces a refused one, and was not taken since.
	renewed bool
	// failed is why there is no token, until retry.
	failed error
	retry  time.Time
}

// acquireToken returns a token. Its errors let a message wait: an operator can mend what is wrong.
func (s *tokenSource) acquireToken(ctx context.Context) (string, error) {
	if token, err := s.cachedToken(); token != "" || err != nil {
		return token, err
	}
	asked := s.asks.DoChan("", func() (any, error) {
		if token, err := s.cachedToken(); token != "" || err != nil {
			return token, err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenTimeout)
		defer cancel()
		return s.renewToken(ctx)
	})
	select {
	case got := <-asked:
		token, _ := got.Val.(string)
		return token, got.Err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// cachedToken returns the token that counts, or the failure of a moment ago.
func (s *tokenSource) cachedToken() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := time.Now(); {
	case now.Before(s.expires):
		return s.token, nil
	case now.Before(s.retry):
		return "", s.failed
	}
	return "", nil
}

// renewToken requests a token and keeps it, or the failure.
func (s *tokenSource) renewToken(ctx context.Context) (string, error) {
	token, life, wait, err := s.requestToken(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = fmt.Errorf("%w: no token from token_url of %s: %w", gateway.ErrBusy, s.table, err)
		s.retry = time.Now().Add(min(max(wait, tokenPause), maxTokenPause))
		return "", s.failed
	}
	life = min(life, maxTokenLife)
	s.token, s.obtained = token, time.Now()
	s.expires = s.obtained.Add(life - min(tokenLeeway, life/2))
	return token, nil
}

// requestToken asks the endpoint. wait is when it wants to be asked again after an error.
func (s *tokenSource) requestToken(ctx context.Context) (token string, life, wait time.Duration, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if s.from.Scope != "" {
		form.Set("scope", s.from.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.from.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	// Both are encoded before (https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1).
	req.SetBasicAuth(url.QueryEscape(s.from.ClientID), url.QueryEscape(s.from.ClientSecret.Reveal()))
	resp, err := s.client.Do(req)
	if err != nil {
		return "", 0, 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", 0, 0, err
	}
	token, life, err = readToken(resp.StatusCode, text)
	return token, life, egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now()), err
}

// readToken reads an answer of a token endpoint
// (https://www.rfc-editor.org/rfc/rfc6749#section-5.1).
func readToken(status int, text []byte) (token string, life time.Duration, err error) {
	var got struct {
		Token   string   `json:"access_token"`
		Type    string   `json:"token_type"`
		Seconds *float64 `json:"expires_in"`
		Error   string   `json:"error"`
	}
	err = json.Unmarshal(text, &got)
	switch {
	case status != http.StatusOK && err == nil && got.Error != "":
		return "", 0, fmt.Errorf("the endpoint answers %d %.100q", status, got.Error)
	case status != http.StatusOK:
		return "", 0, fmt.Errorf("the endpoint answers %d", status)
	case err != nil:
		return "", 0, fmt.Errorf("its answer is not the JSON of a token")
	case !strings.EqualFold(got.Type, "Bearer"):
		return "", 0, fmt.Errorf("its token is of type %.100q, and not Bearer", got.Type)
	case got.Token == "" || strings.Trim(got.Token, tokenCharacters) != "":
		return "", 0, fmt.Errorf("its token has characters that no bearer token has, or none")
	}
	life = defaultTokenLife
	if got.Seconds != nil {
		life = time.Duration(min(max(*got.Seconds, 0), maxTokenLife.Seconds()) * float64(time.Second))
	}
	return got.Token, life, nil
}

// tokenCharacters may stand in a bearer token (https://www.rfc-editor.org/rfc/rfc6750#section-2.1).
const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// rejectToken forgets a token that the partner refuses, and reports whether the request may be sent
// with another. It may not where the partner also refuses the replacement of a refused token:
// then the token is not the reason.
func (s *tokenSource) rejectToken(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != s.token || s.expires.IsZero() { // it is replaced, or its replacement is under way
		return true
	}
	if s.renewed && time.Since(s.obtained) < renewPause {
		return false
	}
	s.renewed, s.expires = true, time.Time{}
	return true
}

// confirmToken records that the partner accepts a token.
func (s *tokenSource) confirmToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token == s.token {
		s.renewed = false
	}
}

// shownToken is a token that a request has shown. It implements [gateway.ShownToken].
type shownToken struct {
	of   *tokenSource
	text string
}

// Confirm implements [gateway.ShownToken].
func (t shownToken) Confirm() { t.of.confirmToken(t.text) }

// Reject implements [gateway.ShownToken].
func (t shownToken) Reject() bool { return t.of.rejectToken(t.text) }

// send sends a request with a token. A response other than 401 confirms the token, unless the
// request has a watcher, which does so itself.
func (s *tokenSource) send(next http.RoundTripper, req *http.Request, token string) (*http.Response, error) {
	req.Header.Set("Authorization", "Bearer "+token)
	watch := gateway.TokenWatcher(req.Context())
	if watch != nil {
		watch(shownToken{s, token})
	}
	resp, err := next.RoundTrip(req)
	if err == nil && resp.StatusCode != http.StatusUnauthorized && watch == nil {
		s.confirmToken(token)
	}
	return resp, err
}

// roundTrip sends a request with a token. One whose token is refused is sent again with another,
// if its body can be. Where the partner refuses the token later, on the connection that the
// response has opened, the watcher sends the request again.
func (s *tokenSource) roundTrip(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	token, err := s.acquireToken(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := s.send(next, req, token)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	again := req.Clone(req.Context())
	if !s.rejectToken(token) || !rewind(again) {
		return resp, nil
	}
	_ = resp.Body.Close()
	if token, err = s.acquireToken(req.Context()); err != nil { // the partner has not taken the request: it waits
		return nil, fmt.Errorf("%w: the partner refuses the token: %w", gateway.ErrBusy, err)
	}
	return s.send(next, again, token)
}

// rewind gives a request its body again, and reports whether it can.
func rewind(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	req.Body = body
	return err == nil
}
