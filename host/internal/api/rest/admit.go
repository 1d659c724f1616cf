package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/api/auth"
)

// admit authenticates the caller and applies rate limits. A call without valid
// credentials counts against the client's address, and so does a call whose
// credentials cannot be checked. A valid caller at the same address keeps its own
// limit.
func (c *call) admit(rt route) error {
	if rt.role == "" {
		return c.h.admitAddress(c.w)
	}
	c.w.Header().Set("Cache-Control", "no-store")
	if err := c.admitToken(rt.role); err != nil {
		return err
	}
	if !c.w.who.Role.Covers(rt.role) {
		return wrongRole(rt)
	}
	return nil
}

// admitToken authenticates the caller by his token and applies his limits. need chooses
// the error text.
func (c *call) admitToken(need auth.Role) error {
	token, fault := credentials(c.r, need)
	if fault != nil {
		c.h.counters.unauthenticated.Inc()
		if err := c.h.admitAddress(c.w); err != nil {
			return err
		}
		return fault
	}
	who, err := c.identify(token)
	if err != nil {
		return err
	}
	c.w.who, c.token = who, token
	return c.admitPrincipal()
}

// admitPrincipal applies the limits of the authenticated caller and of his tenant.
func (c *call) admitPrincipal() error {
	if c.isHop {
		return nil
	}
	who := c.w.who
	if wait, ok := c.h.byCaller.Allow(who.String()); !ok {
		return c.h.tooManyRequests(wait)
	}
	if wait, ok := c.h.byTenant.Allow(who.Tenant); !ok {
		return c.h.tooManyRequests(wait)
	}
	return nil
}

// routeUsers names, in the words of error texts, who has a role.
var routeUsers = map[auth.Role]string{
	auth.User: "users, admins and operators", auth.Admin: "admins and operators", auth.Operator: "operators", auth.Agent: "other swarms",
}

// wrongRole returns the refusal for a caller without the route's role. MAIL fixes
// the text for its own routes.
func wrongRole(rt route) *fault {
	if !isSkepPath(rt.path) {
		return forbidden("invalid role")
	}
	return forbidden("invalid role: this is for " + routeUsers[rt.role])
}

// credentials reads the bearer token (R-087, RFC 6750:
// https://www.rfc-editor.org/rfc/rfc6750).
func credentials(r *http.Request, need auth.Role) (token string, f *fault) {
	header := r.Header.Values("Authorization")
	if len(header) == 0 {
		return "", unauthorized("no API key provided")
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	token = strings.Trim(token, " ")
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t") {
		if need == auth.User {
			return "", unauthorized("invalid role")
		}
		return "", unauthorized("invalid API key format")
	}
	return token, nil
}

// identify authenticates a token. After too many invalid tokens from one address,
// tokens from there are refused unchecked for a while. Tokens that come through another host are
// no guesses: it has checked them, and its address is that of all its callers.
func (c *call) identify(token string) (auth.Principal, error) {
	if c.isHop {
		return c.identifyHop(token)
	}
	done, wait, ok := c.h.throttle.BeginCheck(c.w.address, token)
	if !ok {
		f := c.h.tooManyRequests(wait)
		f.reason, f.cause = "too many wrong credentials", "credentials"
		return auth.Principal{}, f
	}
	outcome := auth.Undetermined
	defer func() { done(outcome) }()
	who, err := c.authenticate(token)
	if err == nil {
		outcome = auth.Accepted
		return who, nil
	}
	if errors.Is(err, auth.ErrUnknown) {
		outcome, err = auth.Rejected, unknownToken(err)
		c.h.counters.unauthenticated.Inc()
	}
	if err := c.h.admitAddress(c.w); err != nil {
		return auth.Principal{}, err
	}
	return auth.Principal{}, err
}

// identifyHop authenticates a token that another host knows.
func (c *call) identifyHop(token string) (auth.Principal, error) {
	who, err := c.authenticate(token)
	if errors.Is(err, auth.ErrUnknown) {
		c.h.counters.unauthenticated.Inc()
		err = unknownToken(err)
	}
	return who, err
}

func (c *call) authenticate(token string) (auth.Principal, error) {
	return c.h.authenticate(c.ctx(), token)
}

// authenticate returns the token's principal. The tenant defaults to the host's.
func (h *Handler) authenticate(ctx context.Context, token string) (auth.Principal, error) {
	who, err := h.authenticator.Authenticate(ctx, token)
	who.Tenant = cmp.Or(who.Tenant, h.opt.Tenant)
	return who, err
}

// unknownToken returns the refusal of an unknown token. Its reason is for the
// audit log only.
func unknownToken(err error) *fault {
	f := unauthorized("invalid API key")
	f.challenge = invalidToken
	var unknown *auth.Unknown
	if errors.As(err, &unknown) {
		f.detail = cmp.Or(unknown.Detail, f.detail)
		f.reason = unknown.Reason
	}
	return f
}

// recheckToken authenticates the caller's token again, for streams and waiting
// posts. An auth backend that is down does not end them.
func (c *call) recheckToken() error {
	if c.token == "" {
		return nil
	}
	return c.h.recheckToken(c.ctx(), c.token, c.w.who)
}

func (h *Handler) recheckToken(ctx context.Context, token string, was auth.Principal) error {
	who, err := h.authenticate(ctx, token)
	if errors.Is(err, auth.ErrUnknown) || err == nil && who != was {
		return errRevoked
	}
	return nil
}

// errRevoked ends a stream or a waiting post whose token is no longer valid.
var errRevoked = errors.New("the token is not valid any more")

// bearerChallenge asks for a bearer token, and invalidToken also refuses the one sent
// (https://www.rfc-editor.org/rfc/rfc6750#section-3).
const (
	bearerChallenge = `Bearer realm="skep"`
	invalidToken    = bearerChallenge + `, error="invalid_token"`
)

func unauthorized(detail string) *fault {
	return &fault{status: http.StatusUnauthorized, detail: detail, challenge: bearerChallenge}
}

// forbidden refuses a caller whose role does not do. MAIL has 401 for it, too.
func forbidden(detail string) *fault {
	f := unauthorized(detail)
	f.cause = "role"
	return f
}

func (h *Handler) admitAddress(w *recorder) error {
	if wait, ok := h.byAddress.Allow(w.address); !ok {
		return h.tooManyRequests(wait)
	}
	return nil
}

func (h *Handler) tooManyRequests(wait time.Duration) *fault {
	h.counters.limited.Inc()
	return &fault{status: http.StatusTooManyRequests, detail: "too many requests", cause: "rate", retryAfter: int(wait / time.Second)}
}
