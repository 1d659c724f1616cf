package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"skep/host/internal/api/auth"
)

// How long published keys are fresh, how long they are used while newer ones
// cannot be fetched, and how often they are fetched at most: with keys, and
// without any.
const (
	keysFresh         = 10 * time.Minute
	keysStale         = 24 * time.Hour
	refreshPause      = 30 * time.Second
	emptyRefreshPause = 5 * time.Second
)

// publishedKeys are the keys that an issuer publishes and rotates.
type publishedKeys struct {
	web *webClient
	now func() time.Time
	// address is the URL of the set; without it the issuer's discovery document
	// has it.
	address, issuer string
	outage          *outage

	// refreshMu is held during a fetch.
	refreshMu sync.Mutex

	mu      sync.Mutex
	keys    []key
	fetched time.Time
	tried   time.Time
	err     error
}

// findKeys returns the keys that may have made a signature. Unknown key ids cause
// a fetch at most every refreshPause: a key that the last fetch did not bring is
// unknown until the next. If that fetch failed, the key may be a new one; the
// error is then an *[auth.Unavailable].
func (p *publishedKeys) findKeys(ctx context.Context, id, alg string) ([]key, error) {
	found, fresh := p.lookUp(id, alg)
	if len(found) > 0 && fresh {
		return found, nil
	}
	var looked error
	if len(found) > 0 {
		// Another caller may be fetching; callers that have a key do not wait.
		if p.refreshMu.TryLock() {
			_ = p.refresh(ctx)
			p.refreshMu.Unlock()
		}
	} else {
		p.refreshMu.Lock()
		looked = p.refresh(ctx)
		p.refreshMu.Unlock()
	}
	found, _ = p.lookUp(id, alg)
	if err := p.usable(); err != nil || len(found) > 0 {
		return found, err
	}
	return nil, looked
}

func (p *publishedKeys) lookUp(id, alg string) (found []key, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return matchKeys(p.keys, id, alg), p.now().Sub(p.fetched) < keysFresh
}

// usable returns why the current keys must not be used.
func (p *publishedKeys) usable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.keys) > 0 && p.now().Sub(p.fetched) < keysStale {
		return nil
	}
	return p.unavailable(p.err, emptyRefreshPause)
}

// refresh fetches the keys unless the last attempt was a moment ago. It returns
// why it could not. The caller holds refreshMu.
func (p *publishedKeys) refresh(ctx context.Context) error {
	p.mu.Lock()
	pause := refreshPause
	if len(p.keys) == 0 {
		pause = emptyRefreshPause
	}
	last := p.err
	left := pause - p.now().Sub(p.tried)
	soon := !p.tried.IsZero() && left > 0
	p.mu.Unlock()
	switch {
	case soon && last != nil:
		return p.unavailable(last, min(left, pause))
	case soon:
		return nil
	}
	// A caller that leaves must not cancel the fetch of the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	keys, err := p.fetch(ctx)
	p.outage.record(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	// The pause begins here: those who waited for a slow fetch must not make it again.
	p.tried = p.now()
	if p.err = err; err != nil {
		return p.unavailable(err, pause)
	}
	p.keys, p.fetched = keys, p.now()
	return nil
}

func (p *publishedKeys) unavailable(err error, retry time.Duration) error {
	return &auth.Unavailable{Backend: jwtTable, Err: fmt.Errorf("fetch the keys of %s: %w", p.issuer, err), Retry: retry}
}

func (p *publishedKeys) fetch(ctx context.Context) ([]key, error) {
	address, err := p.keySetURL(ctx)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if err := p.getJSON(ctx, address, &raw); err != nil {
		return nil, err
	}
	keys, err := parseKeySet(raw, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return keys, nil
}

// keySetURL returns the address of the set from the issuer's discovery document
// (https://openid.net/specs/openid-connect-discovery-1_0.html).
func (p *publishedKeys) keySetURL(ctx context.Context) (string, error) {
	if p.address != "" {
		return p.address, nil
	}
	var about struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	address := strings.TrimSuffix(p.issuer, "/") + "/.well-known/openid-configuration"
	if err := p.getJSON(ctx, address, &about); err != nil {
		return "", err
	}
	switch {
	case about.Issuer != p.issuer:
		return "", fmt.Errorf("%s %s", address, otherIssuer(about.Issuer, p.issuer))
	case about.JWKSURI == "":
		return "", fmt.Errorf("%s has no jwks_uri", address)
	}
	if err := CheckURL(about.JWKSURI); err != nil {
		return "", fmt.Errorf("%s: jwks_uri: %w", address, err)
	}
	if strings.HasPrefix(p.issuer, "https:") && !strings.HasPrefix(about.JWKSURI, "https:") {
		return "", errors.New("the issuer has TLS and its jwks_uri has not")
	}
	return about.JWKSURI, nil
}

func (p *publishedKeys) getJSON(ctx context.Context, address string, out any) error {
	status, err := p.web.fetchJSON(ctx, http.MethodGet, address, "", out)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d", address, status)
	}
	return err
}
