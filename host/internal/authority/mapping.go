package authority

import (
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/auth"
)

// Mapping makes principals of what an authority says. A caller cannot choose
// what it leaves open: a tenant comes from a claim or is fixed, and nobody
// outside the host makes an operator.
type Mapping struct {
	// TenantClaim names the claim with the tenant; without one, Tenant is
	// that of all.
	TenantClaim string
	Tenant      string
	// Tenants are those that there are.
	Tenants []string
	// RoleClaim names the claim with the role, or a list of them. A dot leads
	// into a claim that is an object.
	RoleClaim string
	// Roles says what the values of the claim mean; without it they are
	// "admin", "user" and "agent".
	Roles map[string]auth.Role
	// Role is that of callers to whom the claim gives none; empty refuses them.
	Role auth.Role
}

// standing orders the roles that a list may give: the first one counts.
var standing = []auth.Role{auth.Admin, auth.User, auth.Agent}

// principal reads the claims of a caller with an id.
func (m *Mapping) principal(id string, claims map[string]any) (auth.Principal, error) {
	p := auth.Principal{ID: plain(id), Tenant: m.Tenant, Role: m.role(claims)}
	if m.TenantClaim != "" {
		p.Tenant, _ = lookUp(claims, m.TenantClaim).(string)
	}
	switch {
	case id == "":
		return p, &auth.Unknown{Reason: "it names nobody"}
	case len(p.ID) > maxID:
		return p, &auth.Unknown{Reason: "the name of its owner is too long"}
	case p.Role == "":
		return p, &auth.Unknown{Reason: fmt.Sprintf("the claim %q gives %s no role here", m.RoleClaim, p.ID)}
	case !slices.Contains(m.Tenants, p.Tenant):
		return p, &auth.Unknown{Reason: fmt.Sprintf("it is for tenant %q, which is not there", p.Tenant)}
	}
	return p, nil
}

// role is the highest of those that the claim gives.
func (m *Mapping) role(claims map[string]any) auth.Role {
	var given []auth.Role
	for _, name := range texts(lookUp(claims, m.RoleClaim)) {
		r := auth.Role(name)
		if m.Roles != nil {
			r = m.Roles[name]
		}
		given = append(given, r)
	}
	for _, r := range standing {
		if slices.Contains(given, r) {
			return r
		}
	}
	return m.Role
}

// texts reads a text or a list of them.
func texts(v any) (all []string) {
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

// lookUp finds a claim: by its whole name, which may hold dots, or by the way
// into an object.
func lookUp(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	if inner, is := claims[first].(map[string]any); ok && is {
		return lookUp(inner, rest)
	}
	return nil
}

// maxID is how long a principal's id may be.
const maxID = 128

// plain writes an id with the characters that ids of principals have. What they
// do not have becomes "~" and two hexadecimal digits, and so does "~", so that
// no two ids become one.
func plain(id string) string {
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
