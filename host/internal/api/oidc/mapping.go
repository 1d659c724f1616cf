package oidc

import (
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/api/auth"
)

// Mapping converts a backend's claims to a principal. A caller cannot choose what
// it leaves open: the tenant comes from a claim or is fixed, and no external
// backend makes an operator.
type Mapping struct {
	// TenantClaim names the claim with the tenant. Without it every caller has
	// Tenant.
	TenantClaim string
	Tenant      string
	// Tenants are the existing tenants.
	Tenants []string
	// RoleClaim names the claim with the role, or with a list of roles. A dot
	// selects a member of a claim that is an object.
	RoleClaim string
	// Roles maps values of the claim to roles. Nil maps "admin", "user" and
	// "agent" to themselves.
	Roles map[string]auth.Role
	// Role is the role of a caller without one in the claim; empty refuses the
	// caller.
	Role auth.Role
	// Agents are the ids that may have the role agent, as they are after encoding:
	// an agent speaks for the swarm that its id names.
	Agents []string
}

// roleOrder orders roles: the first one in a list counts.
var roleOrder = []auth.Role{auth.Admin, auth.User, auth.Agent}

// principal converts the claims of the caller with an id.
func (m *Mapping) principal(id string, claims map[string]any) (auth.Principal, error) {
	p := auth.Principal{ID: principalID(id), Tenant: m.Tenant, Role: m.role(claims)}
	if m.TenantClaim != "" {
		p.Tenant, _ = findClaim(claims, m.TenantClaim).(string)
	}
	switch {
	case id == "":
		return p, &auth.Unknown{Reason: "it names nobody"}
	case len(p.ID) > maxID:
		return p, &auth.Unknown{Reason: "the name of its owner is too long"}
	case p.Role == "":
		return p, &auth.Unknown{Reason: fmt.Sprintf("the claim %q gives %s no role here", m.RoleClaim, p.ID)}
	case p.Role == auth.Agent && !slices.Contains(m.Agents, p.ID):
		return p, &auth.Unknown{Reason: fmt.Sprintf("it speaks for swarm %q, which the operator's list agents does not name", p.ID)}
	case !slices.Contains(m.Tenants, p.Tenant):
		return p, &auth.Unknown{Reason: fmt.Sprintf("it is for tenant %q, which is not there", p.Tenant)}
	}
	return p, nil
}

// role returns the highest role in the claim.
func (m *Mapping) role(claims map[string]any) auth.Role {
	var given []auth.Role
	for _, name := range stringList(findClaim(claims, m.RoleClaim)) {
		r := auth.Role(name)
		if m.Roles != nil {
			r = m.Roles[name]
		}
		given = append(given, r)
	}
	for _, r := range roleOrder {
		if slices.Contains(given, r) {
			return r
		}
	}
	return m.Role
}

// stringList reads a string or a list of strings.
func stringList(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// findClaim finds a claim by its whole name, which may hold dots, or by the path
// into an object.
func findClaim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	if inner, is := claims[first].(map[string]any); ok && is {
		return findClaim(inner, rest)
	}
	return nil
}

// maxID bounds a principal's id in bytes.
const maxID = 128

// principalID encodes an id in the characters that ids of principals have.
// Others, and "~", become "~" and two hexadecimal digits, so that different ids
// stay different.
func principalID(id string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
			b.WriteByte(c)
		default:
			b.Write([]byte{'~', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
