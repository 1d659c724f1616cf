package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"skep/host/internal/auth"
)

// How long published keys are taken for new, and for how long they are used
// while newer ones cannot be had; how often a look for newer ones is taken at
// most, and how often while there are none at all.
const (
	keysFresh = 10 * time.Minute
	keysStale = 24 * time.Hour
	lookPause = 30 * time.Second
	needPause = 5 * time.Second
)

// published are the keys that an issuer publishes and now and then changes.
type published struct {
	web *web
	now func() time.Time
	// address is that of the set; without one the issuer says where it is.
	address, issuer string
	outage          *outage

	// looking is held by the one who fetches.
	looking sync.Mutex

	mu      sync.Mutex
	keys    []key
	fetched time.Time
	tried   time.Time
	err     error
}

// find returns the keys that a signature may have been made with. Nobody can
// make it fetch more often than lookPause, whatever key ids he makes up: what was
// not in the set at the last look is unknown until the next. Where that look was in
// vain nobody can tell whether a key is a new one: that is an *[auth.Unavailable].
func (p *published) find(ctx context.Context, id, alg string) ([]key, error) {
	found, fresh := p.look(id, alg)
	if len(found) > 0 && fresh {
		return found, nil
	}
	var looked error
	if len(found) > 0 {
		// Somebody else may be fetching; those who have a key do not wait.
		if p.looking.TryLock() {
			_ = p.refresh(ctx)
			p.looking.Unlock()
		}
	} else {
		p.looking.Lock()
		looked = p.refresh(ctx)
		p.looking.Unlock()
	}
	found, _ = p.look(id, alg)
	if err := p.usable(); err != nil || len(found) > 0 {
		return found, err
	}
	return nil, looked
}

func (p *published) look(id, alg string) (found []key, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return match(p.keys, id, alg), p.now().Sub(p.fetched) < keysFresh
}

// usable says why the keys that are there must not be used.
func (p *published) usable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.keys) > 0 && p.now().Sub(p.fetched) < keysStale {
		return nil
	}
	return p.unavailable(p.err, needPause)
}

// refresh fetches the keys unless that was tried a moment ago. An error says why
// it could not. It holds looking.
func (p *published) refresh(ctx context.Context) error {
	p.mu.Lock()
	pause := lookPause
	if len(p.keys) == 0 {
		pause = needPause
	}
	now, last := p.now(), p.err
	left := pause - now.Sub(p.tried)
	soon := !p.tried.IsZero() && left > 0
	if !soon {
		p.tried = now
	}
	p.mu.Unlock()
	switch {
	case soon && last != nil:
		return p.unavailable(last, min(left, pause))
	case soon:
		return nil
	}
	// A caller who leaves must not spoil it for those who wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	keys, err := p.fetch(ctx)
	p.outage.note(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err != nil {
		return p.unavailable(err, pause)
	}
	p.keys, p.fetched = keys, p.now()
	return nil
}

func (p *published) unavailable(err error, retry time.Duration) error {
	return &auth.Unavailable{Authority: jwtTable, Err: fmt.Errorf("fetch the keys of %s: %w", p.issuer, err), Retry: retry}
}

func (p *published) fetch(ctx context.Context) ([]key, error) {
	address, err := p.place(ctx)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if err := p.get(ctx, address, &raw); err != nil {
		return nil, err
	}
	keys, err := parseKeySet(raw, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return keys, nil
}

// place finds the address of the set in the issuer's description of itself
// (OpenID Connect Discovery 1.0).
func (p *published) place(ctx context.Context) (string, error) {
	if p.address != "" {
		return p.address, nil
	}
	var about struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	address := strings.TrimSuffix(p.issuer, "/") + "/.well-known/openid-configuration"
	if err := p.get(ctx, address, &about); err != nil {
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

func (p *published) get(ctx context.Context, address string, out any) error {
	status, err := p.web.ask(ctx, http.MethodGet, address, "", out)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d", address, status)
	}
	return err
}
