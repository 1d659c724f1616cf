package rest

import (
	"net/http"
	"regexp"
	"time"
	"unicode"

	"skep/host/internal/auth"
	"skep/host/internal/registry"
	"skep/spec/mail"
)

// Bounds of tokens: how long one lives that was asked for without a time, how
// long at most, and the length of a label in bytes.
const (
	tokenLife = 90 * 24 * time.Hour
	maxLife   = 10 * 365 * 24 * time.Hour
	maxLabel  = 128
)

// wish is a token that is asked for.
type wish struct {
	auth.Principal
	life  time.Duration
	label string
}

// wish reads the body of a request for a token.
func (c *call) wish() (w wish, err error) {
	o, err := parseObject(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return w, err
	}
	role := ""
	err = o.texts(goesTo{"role", &role}, goesTo{"id", &w.ID}, goesTo{"tenant", &w.Tenant}, goesTo{"peer", &w.Peer},
		goesTo{"label", &w.label})
	if err != nil {
		return w, err
	}
	if w.Role = auth.Role(role); w.Tenant == "" {
		w.Tenant = c.w.who.Tenant
	}
	if w.life, err = life(o); err != nil {
		return w, err
	}
	return w, w.check()
}

// life reads how long a token is to live.
func life(o object) (time.Duration, error) {
	raw, ok := o.get("ttl_seconds")
	if !ok {
		return tokenLife, nil
	}
	n, ok := integer(raw)
	if !ok || n < 0 || n > int64(maxLife/time.Second) {
		return 0, badRequest("ttl_seconds must be a number from 0, which means until it is revoked, to %d", int64(maxLife/time.Second))
	}
	return time.Duration(n) * time.Second, nil
}

// principalID is what an id may consist of.
var principalID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func (w *wish) check() error {
	switch {
	case w.Role == "":
		return badRequest("role is required: admin, user or agent")
	case !w.Role.Valid():
		return badRequest("role must be admin, user or agent, not %q", clipped(string(w.Role)))
	case w.ID == "":
		return badRequest("id is required: whose the token is")
	case !principalID.MatchString(w.ID):
		return badRequest(`id must be 1 to 128 letters, digits, ".", "_", "~" or "-"`)
	case w.Peer != "" && w.Role != auth.Agent:
		return badRequest("peer is for tokens of role agent: it names the swarm they speak for")
	case w.Peer != "" && mail.CheckSwarmName(w.Peer) != nil:
		return badRequest("peer must be the name of a swarm")
	case len(w.label) > maxLabel:
		return badRequest("label has %d bytes, at most %d", len(w.label), maxLabel)
	case !printable(w.label):
		return badRequest("label must consist of printable characters")
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// clipped bounds what a text repeats of its reader's own words.
func clipped(s string) string { return s[:min(len(s), 64)] }

// mayIssue holds what tokens a caller may have made. A tenant that an admin may
// not name is answered like one that is not there.
func (c *call) mayIssue(p auth.Principal) error {
	who, speaks := c.w.who, p.Speaks()
	_, exists := c.h.rt.Definition(p.Tenant, c.h.opt.Swarm)
	operator := who.Role == auth.Operator
	without := c.h.mayVouch(auth.Maker{Tenant: who.Tenant, Role: who.Role}, speaks)
	switch {
	case p.Role == auth.Operator:
		return denied("tokens of operators are not issued; add a key of role operator to [[auth.keys]]", "asked for an operator's token")
	case p.Role == auth.Admin && !operator:
		return denied("an admin makes tokens of users and agents; those of admins are for the operator to make", "asked for an admin's token")
	case speaks != "" && registry.Alike(speaks, c.h.opt.Swarm):
		return badRequest("an agent's token speaks for another swarm than '%s', which is this host's own, and for none whose name differs from it in case and punctuation only; give another peer or id", c.h.opt.Swarm)
	case without != "":
		return denied(without, "asked for a token of peer "+speaks)
	case operator && !exists, p.Tenant != who.Tenant && !operator:
		return c.noTenant(p.Tenant, "asked for a token of tenant ")
	case c.h.opt.Operators.Share(p):
		return newFault(http.StatusConflict, "an operator has the id '%s', and MAIL knows both as admins; take another id", p.ID)
	}
	return nil
}

// noTenant is what a caller is told of a tenant that is not there or another's;
// of one that is there the audit hears.
func (c *call) noTenant(tenant, asked string) *fault {
	f := newFault(http.StatusNotFound, "tenant '%s' not found", clipped(tenant))
	if _, exists := c.h.rt.Definition(tenant, c.h.opt.Swarm); exists {
		f.reason = asked + tenant
	}
	return f
}

// denied is a refusal that is audited.
func denied(detail, reason string) *fault {
	f := unauthorized("invalid role: " + detail)
	f.reason = reason
	return f
}
