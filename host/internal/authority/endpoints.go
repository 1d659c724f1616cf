package authority

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"skep/host/internal/auth"
	"skep/host/internal/recent"
)

// endpointsTable names this authority in refusals.
const endpointsTable = "[auth.endpoints]"

// Bounds of asking: how many at once, of how many keys the answer is
// remembered, and for how long a key is taken for a wrong one.
const (
	maxAsking     = 32
	maxRemembered = 10_000
	wrongFor      = 5 * time.Second
	comeAgain     = 5 * time.Second
)

// EndpointsOptions of [NewEndpoints]. The addresses and Mapping are required.
type EndpointsOptions struct {
	// Login takes the caller's key and gives a token; TokenInfo takes that and
	// tells whose it is (contract 4.1).
	Login, TokenInfo string
	// CacheTTL is how long an answer holds; 0 asks each time.
	CacheTTL time.Duration
	Mapping  Mapping
	Now      func() time.Time
	// Logger is told why an endpoint gives no answer. It may be nil.
	Logger *slog.Logger
}

// Endpoints is the authority that MAIL's reference asks.
type Endpoints struct {
	opt    EndpointsOptions
	web    *web
	outage *outage
	asking chan struct{}
	flight singleflight.Group
	known  *recent.Map[digest, auth.Principal]
	wrong  *recent.Map[digest, *auth.Unknown]
}

type digest = [sha256.Size]byte

var _ auth.Authority = (*Endpoints)(nil)

// NewEndpoints checks the options. It asks nobody yet.
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
		opt: opt, web: newWeb(), outage: newOutage(endpointsTable, opt.Logger, opt.Now), asking: make(chan struct{}, maxAsking),
		known: recent.New[digest, auth.Principal](opt.CacheTTL, maxRemembered, opt.Now),
		wrong: recent.New[digest, *auth.Unknown](wrongFor, maxRemembered, opt.Now),
	}, nil
}

// Close gives connections free.
func (e *Endpoints) Close() { e.web.close() }

// Warnings says what was wrong with the last answer, if anything was.
func (e *Endpoints) Warnings() []string { return e.outage.warnings() }

// Claims implements [auth.Authority]: who is asked last may judge anything.
func (e *Endpoints) Claims(string) bool { return true }

// Authenticate implements [auth.Authenticator]. Callers with one key share the
// asking, and its answer.
func (e *Endpoints) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	sum := sha256.Sum256([]byte(token))
	if p, ok := e.known.Get(sum); ok {
		return p, nil
	}
	if u, ok := e.wrong.Get(sum); ok {
		return auth.Principal{}, u
	}
	got, err, _ := e.flight.Do(string(sum[:]), func() (any, error) {
		// A caller who leaves must not spoil it for those who share.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return e.ask(ctx, sum, token)
	})
	p, _ := got.(auth.Principal)
	return p, err
}

// ask asks both endpoints and remembers the answer.
func (e *Endpoints) ask(ctx context.Context, sum digest, token string) (auth.Principal, error) {
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	case <-ctx.Done():
		return auth.Principal{}, silent(errors.New("too many callers wait for it"))
	}
	p, err := e.whose(ctx, token)
	var unknown *auth.Unknown
	switch {
	case err == nil:
		e.known.Put(sum, p)
		e.outage.note(nil)
	case errors.As(err, &unknown):
		e.wrong.Put(sum, unknown)
		e.outage.note(nil)
	default:
		e.outage.note(errors.Unwrap(err))
	}
	return p, err
}

func (e *Endpoints) whose(ctx context.Context, key string) (p auth.Principal, err error) {
	var login struct {
		Token string `json:"token"`
	}
	if err := e.step(ctx, http.MethodPost, e.opt.Login, key, "invalid API key", &login); err != nil {
		return p, err
	}
	if login.Token == "" {
		return p, silent(fmt.Errorf("POST %s: there is no token in the answer", e.opt.Login))
	}
	var info map[string]any
	if err := e.step(ctx, http.MethodGet, e.opt.TokenInfo, login.Token, "invalid token", &info); err != nil {
		return p, err
	}
	id, _ := info["id"].(string)
	p, err = e.opt.Mapping.principal(id, info)
	if err != nil {
		return p, &auth.Unknown{Detail: "invalid token", Reason: endpointsTable + ": " + err.Error()}
	}
	return p, nil
}

// step asks one endpoint. A 401 is an answer; anything but that and 200 is none.
func (e *Endpoints) step(ctx context.Context, method, address, token, detail string, out any) error {
	status, err := e.web.ask(ctx, method, address, token, out)
	switch {
	case err != nil:
		return silent(err)
	case status == http.StatusUnauthorized:
		return &auth.Unknown{Detail: detail, Reason: fmt.Sprintf("%s: %s %s answers 401", endpointsTable, method, address)}
	case status != http.StatusOK:
		return silent(fmt.Errorf("%s %s: status %d", method, address, status))
	}
	return nil
}

func silent(err error) error {
	return &auth.Unavailable{Authority: endpointsTable, Err: err, Retry: comeAgain}
}
