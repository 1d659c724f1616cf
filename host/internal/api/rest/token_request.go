package rest

import (
	"net/http"
	"regexp"
	"time"
	"unicode"

	"skep/host/internal/api/auth"
	"skep/spec/mail"
)

// Default and maximum of a token's life, and the maximum of its label in bytes.
const (
	defaultTTL = 90 * 24 * time.Hour
	maxTTL     = 10 * 365 * 24 * time.Hour
	maxLabel   = 128
)

// tokenRequest is the parsed body of POST /skep/v1/tokens.
type tokenRequest struct {
	auth.Principal
	ttl   time.Duration
	label string
}

// readTokenRequest parses and validates the body.
func (c *call) readTokenRequest() (w tokenRequest, err error) {
	o, err := c.bodyObject()
	if err != nil {
		return w, err
	}
	role := ""
	err = o.readTexts(textField{"role", &role}, textField{"id", &w.ID}, textField{"tenant", &w.Tenant}, textField{"peer", &w.Peer},
		textField{"label", &w.label})
	if err != nil {
		return w, err
	}
	if w.Role = auth.Role(role); w.Tenant == "" {
		w.Tenant = c.w.who.Tenant
	}
	if w.ttl, err = readTTL(o); err != nil {
		return w, err
	}
	return w, w.validate()
}

// readTTL reads the life of the token.
func readTTL(o *object) (time.Duration, error) {
	raw, ok := o.get("ttl_seconds")
	if !ok {
		return defaultTTL, nil
	}
	n, ok := parseInteger(raw)
	if !ok || n < 0 || n > int64(maxTTL/time.Second) {
		return 0, badRequest("ttl_seconds must be a number from 0, which means until it is revoked, to %d", int64(maxTTL/time.Second))
	}
	return time.Duration(n) * time.Second, nil
}

// principalID matches the id of a principal.
var principalID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func (w *tokenRequest) validate() error {
	switch {
	case w.Role == "":
		return badRequest("role is required: admin, user or agent")
	case !w.Role.Valid():
		return badRequest("role must be admin, user or agent, not %q", truncate(string(w.Role)))
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

// truncate bounds a caller's own text in an error.
func truncate(s string) string { return s[:min(len(s), 64)] }

// checkIssue refuses tokens that the caller may not create. For an admin, a
// foreign tenant is answered like a missing one.
func (c *call) checkIssue(p auth.Principal) error {
	who, speaks := c.w.who, p.PeerSwarm()
	_, exists := c.h.swarms.Definition(p.Tenant, c.h.opt.Swarm)
	operator := who.Role == auth.Operator
	without := c.h.peerTokenDenial(auth.Creator{Tenant: who.Tenant, Role: who.Role}, speaks)
	switch {
	case p.Role == auth.Operator:
		return denied("tokens of operators are not issued; add a key of role operator to [[auth.keys]]", "asked for an operator's token")
	case p.Role == auth.Admin && !operator:
		return denied("an admin makes tokens of users and agents; those of admins are for the operator to make", "asked for an admin's token")
	case speaks != "" && mail.SwarmNamesCollide(speaks, c.h.opt.Swarm):
		return badRequest("an agent's token speaks for another swarm than '%s', which is this host's own, and for none whose name differs from it in case and punctuation only; give another peer or id", c.h.opt.Swarm)
	case without != "":
		return denied(without, "asked for a token of peer "+speaks)
	case operator && !exists, p.Tenant != who.Tenant && !operator:
		return c.tenantNotFound(p.Tenant, "asked for a token of tenant ")
	case c.h.opt.Operators.Conflicts(p):
		return newFault(http.StatusConflict, "an operator has the id '%s', and MAIL knows both as admins; take another id", p.ID)
	}
	return nil
}

// tenantNotFound refuses a missing or foreign tenant with one text. A foreign one
// is audited.
func (c *call) tenantNotFound(tenant, asked string) *fault {
	f := newFault(http.StatusNotFound, "tenant '%s' not found", truncate(tenant))
	if _, exists := c.h.swarms.Definition(tenant, c.h.opt.Swarm); exists {
		f.reason = asked + tenant
	}
	return f
}

// denied is a refusal with an audit reason.
func denied(detail, reason string) *fault {
	f := forbidden("invalid role: " + detail)
	f.reason = reason
	return f
}
