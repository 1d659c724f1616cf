package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"skep/host/internal/auth"
)

// Tokens makes and revokes tokens. It is safe for concurrent use.
type Tokens interface {
	// Issue returns the text of a token, which is kept nowhere; a life of 0
	// has no end.
	Issue(ctx context.Context, p auth.Principal, life time.Duration, label, by string) (text string, i auth.Issued, err error)
	// List returns those of a tenant, or with an empty one of all, oldest
	// first.
	List(tenant string) []auth.Issued
	Get(id string) (auth.Issued, error)
	Revoke(ctx context.Context, id string) (auth.Issued, error)
}

var _ Tokens = (*auth.Tokens)(nil)

// noTokens issues none.
type noTokens struct{}

func (noTokens) Issue(context.Context, auth.Principal, time.Duration, string, string) (string, auth.Issued, error) {
	return "", auth.Issued{}, newFault(http.StatusServiceUnavailable, "this host issues no tokens")
}
func (noTokens) List(string) []auth.Issued       { return nil }
func (noTokens) Get(string) (auth.Issued, error) { return auth.Issued{}, auth.ErrNoToken }
func (noTokens) Revoke(context.Context, string) (auth.Issued, error) {
	return auth.Issued{}, auth.ErrNoToken
}

// token is an issued token as it is shown.
type token struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	Role    auth.Role `json:"role"`
	Who     string    `json:"principal"`
	Peer    string    `json:"peer,omitempty"`
	Label   string    `json:"label"`
	By      string    `json:"by"`
	State   string    `json:"state"`
	Created string    `json:"created"`
	Expires *string   `json:"expires"`
	Used    *string   `json:"last_used"`
	Revoked *string   `json:"revoked"`
}

func newToken(i auth.Issued, now time.Time) token {
	t := token{
		ID: i.ID, Tenant: i.Tenant, Role: i.Role, Who: i.Principal.ID, Peer: i.Speaks(), Label: i.Label, By: i.By,
		State: "valid", Created: stamp(i.Created), Expires: maybe(i.Expires), Used: maybe(i.Used), Revoked: maybe(i.Revoked),
	}
	switch {
	case !i.Revoked.IsZero():
		t.State = "revoked"
	case !i.Alive(now):
		t.State = "expired"
	}
	return t
}

// maybe is a time that may be none.
func maybe(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// tokensPath is where tokens are made and listed.
const tokensPath = ownPrefix + "tokens"

// createToken is POST /skep/v1/tokens.
func (c *call) createToken() error {
	wish, err := c.wish()
	if err != nil {
		return err
	}
	if err := c.mayIssue(wish.Principal); err != nil {
		return err
	}
	text, i, err := c.h.opt.Tokens.Issue(c.ctx(), wish.Principal, wish.life, wish.label, c.w.who.String())
	if errors.Is(err, auth.ErrTooManyTokens) {
		err = newFault(http.StatusConflict, "%s", err)
	}
	target := wish.Principal.String()
	if err == nil {
		target += " " + i.ID
	}
	if err := c.did("token.create", target, err); err != nil {
		return err
	}
	reply(c.w, http.StatusCreated, struct {
		Text string `json:"token"`
		token
	}{text, newToken(i, c.h.opt.Now())})
	return nil
}

// listTokens is GET /skep/v1/tokens, oldest first.
func (c *call) listTokens() error {
	limit, err := c.number("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	tenant := c.r.URL.Query().Get("tenant")
	if c.w.who.Role != auth.Operator {
		if tenant != "" && tenant != c.w.who.Tenant {
			return c.noTenant(tenant, "asked for the tokens of tenant ")
		}
		tenant = c.w.who.Tenant
	}
	all := c.h.opt.Tokens.List(tenant)
	if after := c.r.URL.Query().Get("after"); after != "" {
		i := slices.IndexFunc(all, func(i auth.Issued) bool { return i.ID == after })
		if i < 0 {
			return badRequest("after must be the next of an earlier page")
		}
		all = all[i+1:]
	}
	page := []token{}
	var next *string
	for _, i := range all {
		if len(page) == int(limit) {
			next = &page[len(page)-1].ID
			break
		}
		page = append(page, newToken(i, c.h.opt.Now()))
	}
	return c.reply(struct {
		Tokens []token `json:"tokens"`
		Next   *string `json:"next"`
	}{page, next})
}

// revokeToken is DELETE /skep/v1/tokens/{id}.
func (c *call) revokeToken() error {
	id := c.r.PathValue("token_id")
	missing := newFault(http.StatusNotFound, "token '%s' not found", clipped(id))
	i, err := c.h.opt.Tokens.Get(id)
	if err != nil {
		return missing
	}
	who := c.w.who
	if i.Tenant != who.Tenant && who.Role != auth.Operator {
		missing.reason = fmt.Sprintf("token %s is of tenant %s", id, i.Tenant)
		return missing
	}
	if i.Role == auth.Admin && who.Role != auth.Operator {
		return denied("an admin's token is for the operator to revoke", "asked to revoke an admin's token")
	}
	if !i.Revoked.IsZero() {
		return c.reply(newToken(i, c.h.opt.Now()))
	}
	i, err = c.h.opt.Tokens.Revoke(c.ctx(), id)
	if errors.Is(err, auth.ErrNoToken) {
		err = missing
	}
	if err := c.did("token.revoke", i.Principal.String()+" "+id, err); err != nil {
		return err
	}
	return c.reply(newToken(i, c.h.opt.Now()))
}
