package oidc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"skep/host/internal/api/auth"
)

// endpointsTable names this backend in refusals.
const endpointsTable = "[auth.endpoints]"

// Limits of queries: how many at once, how many answers are remembered, and for
// how long a rejected key is.
const (
	maxConcurrentQueries = 32
	maxRemembered        = 10_000
	rejectedTTL          = 5 * time.Second
	retryAfter           = 5 * time.Second
)

// EndpointsOptions of [NewEndpoints]. The addresses and Mapping are required.
type EndpointsOptions struct {
	// Login takes the caller's key and returns a token. TokenInfo takes the token
	// and returns its owner.
	Login, TokenInfo string
	// CacheTTL is how long an answer is reused; 0 queries each time.
	CacheTTL time.Duration
	Mapping  Mapping
	Now      func() time.Time
	// Logger gets the faults of the endpoints. It may be nil.
	Logger *slog.Logger
}

// Endpoints is the auth backend of MAIL's reference: a login and a token-info
// endpoint.
type Endpoints struct {
	opt      EndpointsOptions
	web      *webClient
	outage   *outage
	slots    chan struct{}
	inflight singleflight.Group
	accepted *auth.RecentMap[digest, auth.Principal]
	rejected *auth.RecentMap[digest, *auth.Unknown]
}

type digest = [sha256.Size]byte

var _ auth.Backend = (*Endpoints)(nil)

// NewEndpoints checks the options. It sends no request.
func NewEndpoints(opt EndpointsOptions) (*Endpoints, error) {
	for key, address := range map[string]string{"login": opt.Login, "token_info": opt.TokenInfo} {
		if err := CheckURL(address); err != nil {
			return nil, fmt.Errorf("%s %s: %w", endpointsTable, key, err)
		}
	}
	if opt.Mapping.RoleClaim == "" {
		opt.Mapping.RoleClaim = "role"
	}
	return &Endpoints{
		opt: opt, web: newWebClient(), outage: newOutage(endpointsTable, opt.Logger, opt.Now), slots: make(chan struct{}, maxConcurrentQueries),
		accepted: auth.NewRecentMap[digest, auth.Principal](opt.CacheTTL, maxRemembered, opt.Now),
		rejected: auth.NewRecentMap[digest, *auth.Unknown](rejectedTTL, maxRemembered, opt.Now),
	}, nil
}

// Close closes idle connections.
func (e *Endpoints) Close() { e.web.close() }

// Warnings returns the fault of the last answer, if there was one.
func (e *Endpoints) Warnings() []string { return e.outage.warnings() }

// Claims implements [auth.Backend]: the last backend of the chain claims every
// token.
func (e *Endpoints) Claims(string) bool { return true }

// Authenticate implements [auth.Authenticator]. Callers with one key share one
// query.
func (e *Endpoints) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	sum := sha256.Sum256([]byte(token))
	if p, known, err := e.remembered(sum); known {
		return p, err
	}
	got, err, _ := e.inflight.Do(string(sum[:]), func() (any, error) {
		if p, known, err := e.remembered(sum); known {
			return p, err // a query has ended meanwhile
		}
		// A caller that leaves must not cancel the query of the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		return e.query(ctx, sum, token)
	})
	p, _ := got.(auth.Principal)
	return p, err
}

// remembered returns an answer that still holds.
func (e *Endpoints) remembered(sum digest) (p auth.Principal, known bool, err error) {
	if p, ok := e.accepted.Get(sum); ok {
		return p, true, nil
	}
	if u, ok := e.rejected.Get(sum); ok {
		return auth.Principal{}, true, u
	}
	return auth.Principal{}, false, nil
}

// query queries both endpoints and remembers the answer.
func (e *Endpoints) query(ctx context.Context, sum digest, token string) (auth.Principal, error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return auth.Principal{}, unavailable(errors.New("too many callers wait for it"))
	}
	p, err := e.lookUpKey(ctx, token)
	var unknown *auth.Unknown
	switch {
	case err == nil:
		e.accepted.Put(sum, p)
		e.outage.record(nil)
	case errors.As(err, &unknown):
		e.rejected.Put(sum, unknown)
		e.outage.record(nil)
	default:
		e.outage.record(errors.Unwrap(err))
	}
	return p, err
}

func (e *Endpoints) lookUpKey(ctx context.Context, key string) (p auth.Principal, err error) {
	var login struct {
		Token string `json:"token"`
	}
	if err := e.callEndpoint(ctx, http.MethodPost, e.opt.Login, key, "invalid API key", &login); err != nil {
		return p, err
	}
	if login.Token == "" {
		return p, unavailable(fmt.Errorf("POST %s: there is no token in the answer", e.opt.Login))
	}
	var info map[string]any
	if err := e.callEndpoint(ctx, http.MethodGet, e.opt.TokenInfo, login.Token, "invalid token", &info); err != nil {
		return p, err
	}
	id, _ := info["id"].(string)
	p, err = e.opt.Mapping.principal(id, info)
	if err != nil {
		return p, &auth.Unknown{Detail: "invalid token", Reason: endpointsTable + ": " + err.Error()}
	}
	return p, nil
}

// callEndpoint calls one endpoint. 200 and 401 are answers; any other status is a
// fault.
func (e *Endpoints) callEndpoint(ctx context.Context, method, address, token, detail string, out any) error {
	status, err := e.web.fetchJSON(ctx, method, address, token, out)
	switch {
	case err != nil:
		return unavailable(err)
	case status == http.StatusUnauthorized:
		return &auth.Unknown{Detail: detail, Reason: fmt.Sprintf("%s: %s %s answers 401", endpointsTable, method, address)}
	case status != http.StatusOK:
		return unavailable(fmt.Errorf("%s %s: status %d", method, address, status))
	}
	return nil
}

func unavailable(err error) error {
	return &auth.Unavailable{Backend: endpointsTable, Err: err, Retry: retryAfter}
}
