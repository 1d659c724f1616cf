package rest

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/auth"
)

// admit finds out who the caller is and whether it may go on. Calls without
// credentials, with wrong ones, and with those that cannot be told, count for the
// address they come from, so that whoever shares it with a guesser keeps his own
// share.
func (c *call) admit(rt route) error {
	if rt.need == "" {
		return c.h.admitAddress(c.w)
	}
	c.w.Header().Set("Cache-Control", "no-store")
	token, fault := credentials(c.r, rt.need)
	if fault != nil {
		c.h.counters.unauthenticated.Add(1)
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
	if wait, ok := c.h.byCaller.Allow(who.String()); !ok {
		return c.h.tooMany(wait)
	}
	if !who.Role.Covers(rt.need) {
		return wrongRole(rt)
	}
	return nil
}

// takers are those who have what a route needs.
var takers = map[auth.Role]string{
	auth.User: "users, admins and operators", auth.Admin: "admins and operators", auth.Operator: "operators", auth.Agent: "other swarms",
}

// wrongRole says whom a route is for. The text of MAIL's routes is fixed (contract
// 1.1).
func wrongRole(rt route) *fault {
	if !isOwn(rt.path) {
		return unauthorized("invalid role")
	}
	return unauthorized("invalid role: this is for " + takers[rt.need])
}

// credentials reads the caller's token (contract 1.1, R-087).
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

// identify asks whose a token is. Too many wrong ones from an address, and
// nothing from there is looked at for a while.
func (c *call) identify(token string) (auth.Principal, error) {
	done, wait, ok := c.h.guesses.Try(c.w.from, token)
	if !ok {
		f := c.h.tooMany(wait)
		f.reason = "too many wrong credentials"
		return auth.Principal{}, f
	}
	outcome := auth.Untold
	defer func() { done(outcome) }()
	who, err := c.whose(token)
	if err == nil {
		outcome = auth.Right
		return who, nil
	}
	if errors.Is(err, auth.ErrUnknown) {
		outcome, err = auth.Wrong, stranger(err)
		c.h.counters.unauthenticated.Add(1)
	}
	if err := c.h.admitAddress(c.w); err != nil {
		return auth.Principal{}, err
	}
	return auth.Principal{}, err
}

// whose asks for the principal of a token. One that names no tenant is of the
// host's.
func (c *call) whose(token string) (auth.Principal, error) {
	who, err := c.h.known.Authenticate(c.ctx(), token)
	who.Tenant = cmp.Or(who.Tenant, c.h.opt.Tenant)
	return who, err
}

// stranger tells a caller that his token is nobody's, and the operator why.
func stranger(err error) *fault {
	f := unauthorized("invalid API key")
	var unknown *auth.Unknown
	if errors.As(err, &unknown) {
		f.detail = cmp.Or(unknown.Detail, f.detail)
		f.reason = unknown.Reason
	}
	return f
}

// stillKnown asks again whose the caller's token is, for answers that last.
// That an authority does not answer ends nothing.
func (c *call) stillKnown() error {
	if c.token == "" {
		return nil
	}
	who, err := c.whose(c.token)
	if errors.Is(err, auth.ErrUnknown) || err == nil && who != c.w.who {
		return errRevoked
	}
	return nil
}

// errRevoked ends an answer whose caller may not have it any more.
var errRevoked = errors.New("the token is not valid any more")

func unauthorized(detail string) *fault {
	return &fault{status: http.StatusUnauthorized, detail: detail, challenge: true}
}

func (h *Handler) admitAddress(w *recorder) error {
	if wait, ok := h.byAddress.Allow(w.from); !ok {
		return h.tooMany(wait)
	}
	return nil
}

func (h *Handler) tooMany(wait time.Duration) *fault {
	h.counters.limited.Add(1)
	return &fault{status: http.StatusTooManyRequests, detail: "too many requests", retry: int(wait / time.Second)}
}
