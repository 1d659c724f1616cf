package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"skep/host/internal/api/auth"
)

// Tokens issues and revokes tokens. It is safe for concurrent use.
type Tokens interface {
	// Issue returns the text of a token, which is not stored. A life of 0 means
	// no end.
	Issue(ctx context.Context, p auth.Principal, life time.Duration, label, by string) (text string, i auth.IssuedToken, err error)
	// List returns the tokens of a tenant, or of all for an empty one, oldest
	// first.
	List(tenant string) []auth.IssuedToken
	Get(id string) (auth.IssuedToken, error)
	Revoke(ctx context.Context, id string) (auth.IssuedToken, error)
}

var _ Tokens = (*auth.Tokens)(nil)

// noTokens refuses.
type noTokens struct{}

func (noTokens) Issue(context.Context, auth.Principal, time.Duration, string, string) (string, auth.IssuedToken, error) {
	return "", auth.IssuedToken{}, newFault(http.StatusServiceUnavailable, "this host issues no tokens")
}
func (noTokens) List(string) []auth.IssuedToken       { return nil }
func (noTokens) Get(string) (auth.IssuedToken, error) { return auth.IssuedToken{}, auth.ErrNoToken }
func (noTokens) Revoke(context.Context, string) (auth.IssuedToken, error) {
	return auth.IssuedToken{}, auth.ErrNoToken
}

// tokenRecord is an issued token as JSON.
type tokenRecord struct {
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

func newTokenRecord(i auth.IssuedToken, now time.Time) tokenRecord {
	t := tokenRecord{
		ID: i.ID, Tenant: i.Tenant, Role: i.Role, Who: i.Principal.ID, Peer: i.PeerSwarm(), Label: i.Label, By: i.By,
		State: "valid", Created: formatTime(i.Created), Expires: formatTimeOrNull(i.Expires), Used: formatTimeOrNull(i.Used), Revoked: formatTimeOrNull(i.Revoked),
	}
	switch {
	case !i.Revoked.IsZero():
		t.State = "revoked"
	case !i.ValidAt(now):
		t.State = "expired"
	}
	return t
}

// tokensPath is the path of the token routes.
const tokensPath = skepPrefix + "tokens"

// createToken is POST /skep/v1/tokens.
func (c *call) createToken() error {
	request, err := c.readTokenRequest()
	if err != nil {
		return err
	}
	if err := c.checkIssue(request.Principal); err != nil {
		return err
	}
	text, i, err := c.h.opt.Tokens.Issue(c.ctx(), request.Principal, request.ttl, request.label, c.w.who.String())
	if errors.Is(err, auth.ErrTooManyTokens) {
		err = newFault(http.StatusConflict, "%s", err)
	}
	target := request.Principal.String()
	if err == nil {
		target += " " + i.ID
	}
	if err := c.auditAct("token.create", target, err); err != nil {
		return err
	}
	reply(c.w, http.StatusCreated, struct {
		Text string `json:"token"`
		tokenRecord
	}{text, newTokenRecord(i, c.h.opt.Now())})
	return nil
}

// listTokens is GET /skep/v1/tokens, oldest first.
func (c *call) listTokens() error {
	limit, err := c.intParam("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	tenant, err := c.param("tenant")
	if err != nil {
		return err
	}
	if tenant, err = c.checkTokensOf(tenant); err != nil {
		return err
	}
	all := c.h.opt.Tokens.List(tenant)
	after, err := c.param("after")
	if err != nil {
		return err
	}
	if after != "" {
		i := slices.IndexFunc(all, func(i auth.IssuedToken) bool { return i.ID == after })
		if i < 0 {
			return badRequest("after must be the next of an earlier page")
		}
		all = all[i+1:]
	}
	page := []tokenRecord{}
	var next *string
	for _, i := range all {
		if len(page) == int(limit) {
			next = &page[len(page)-1].ID
			break
		}
		page = append(page, newTokenRecord(i, c.h.opt.Now()))
	}
	return c.reply(struct {
		Tokens []tokenRecord `json:"tokens"`
		Next   *string       `json:"next"`
	}{page, next})
}

// checkTokensOf returns the tenant whose tokens the caller sees of the one that was asked for; empty is all.
func (c *call) checkTokensOf(tenant string) (string, error) {
	own := c.w.who.Tenant
	switch {
	case c.w.who.Role != auth.Operator && tenant != "" && tenant != own:
		return "", c.tenantNotFound(tenant, "asked for the tokens of tenant ")
	case c.w.who.Role != auth.Operator:
		return own, nil
	case tenant != "" && tenant != own:
		return tenant, c.checkTenant(tenant)
	}
	return tenant, nil
}

// revokeToken is DELETE /skep/v1/tokens/{id}.
func (c *call) revokeToken() error {
	id := c.r.PathValue("token_id")
	missing := newFault(http.StatusNotFound, "token '%s' not found", truncate(id))
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
		return c.reply(newTokenRecord(i, c.h.opt.Now()))
	}
	i, err = c.h.opt.Tokens.Revoke(c.ctx(), id)
	if errors.Is(err, auth.ErrNoToken) {
		err = missing
	}
	if err := c.auditAct("token.revoke", i.Principal.String()+" "+id, err); err != nil {
		return err
	}
	return c.reply(newTokenRecord(i, c.h.opt.Now()))
}
