package config

import (
	"fmt"
	"slices"
	"time"

	"skep/host/internal/authority"
	"skep/spec/mail"
)

// JWT is the [auth.jwt] table; Issuer is empty without one.
type JWT struct {
	Issuer     string
	Audience   string
	Keys       string // a JSON Web Key Set; empty when it is to be fetched
	KeysURL    string // empty when the issuer is to be asked for it
	Algorithms []string
	Leeway     time.Duration
	Outsiders
}

// AuthEndpoints is the [auth.endpoints] table; Login is empty without one.
type AuthEndpoints struct {
	Login     string
	TokenInfo string
	CacheTTL  time.Duration
	Outsiders
}

// Outsiders is who callers are that an outside authority vouches for.
type Outsiders struct {
	Tenant      string // of all, when there is no TenantClaim
	TenantClaim string
	RoleClaim   string
	Roles       map[string]string // nil means MAIL's own names
	Role        string            // of those without; empty refuses them
}

// outsideRoles are those that somebody outside the host may give.
var outsideRoles = []string{RoleAdmin, RoleUser, RoleAgent}

func (d *decoder) jwt(t *table, tenants []string) JWT {
	var j JWT
	for _, field := range []struct {
		key string
		to  *string
	}{{"issuer", &j.Issuer}, {"audience", &j.Audience}} {
		if *field.to = t.text(field.key, ""); *field.to == "" && t.values != nil {
			t.missing(field.key, "; a token must be told from one for another service")
		}
	}
	d.jwtKeys(t, &j)
	j.Algorithms = d.algorithms(t, j.Keys != "")
	j.Leeway = t.duration("leeway", 30*time.Second, within(0, 5*time.Minute))
	j.Outsiders = d.outsiders(t, tenants)
	t.done()
	if t.values == nil {
		return JWT{}
	}
	return j
}

// jwtKeys reads where the issuer's keys are: here, at an address, or where the
// issuer says.
func (d *decoder) jwtKeys(t *table, j *JWT) {
	keys, isHere := t.value("keys")
	place, isThere := t.value("keys_url")
	issuer, named := t.value("issuer")
	switch {
	case isHere && isThere:
		d.atKey(place.spot, fmt.Sprintf("%s and %s exclude each other", keys.path, place.path))
	case isHere:
		if err := authority.CheckKeySet(keys.text); err != nil {
			d.atValue(keys.spot, fmt.Sprintf(`%s must be a JSON Web Key Set, as in "file::jwks.json": %s`, keys.path, err))
		}
	case isThere:
		d.checkSafe(place)
	case named && !t.has("keys"):
		if authority.CheckURL(issuer.text) != nil {
			d.atValue(issuer.spot, fmt.Sprintf("%s is where its keys are asked for, and must begin with https://; or give keys or keys_url", issuer.path))
		}
	}
	j.Keys, j.KeysURL = keys.text, place.text
}

// checkSafe holds an address that keys or tokens are sent to, or come from.
func (d *decoder) checkSafe(v value) {
	if authority.CheckURL(v.text) != nil {
		d.atValue(v.spot, fmt.Sprintf("%s must begin with https://, which %s does not; plain http:// is for this machine only", v.path, v.shown))
	}
}

// algorithms reads what tokens may be signed with. A shared secret is never
// fetched.
func (d *decoder) algorithms(t *table, own bool) []string {
	allowed := authority.Asymmetric
	if own {
		allowed = slices.Concat(authority.Asymmetric, authority.Symmetric)
	}
	items := t.list("algorithms")
	for _, v := range items {
		switch {
		case slices.Contains(allowed, v.text):
		case slices.Contains(authority.Symmetric, v.text):
			d.atValue(v.spot, fmt.Sprintf("%s needs a shared secret, which is never fetched; give it in keys", v.shown))
		default:
			d.atValue(v.spot, fmt.Sprintf("%s is not one of %s", v.shown, listOf(allowed))).near(v.text, allowed)
		}
	}
	if t.has("algorithms") && len(items) == 0 {
		d.atKey(t.child("algorithms"), t.path+".algorithms must name at least one")
	}
	return textsOf(items)
}

func (d *decoder) endpoints(t *table, tenants []string) AuthEndpoints {
	e := AuthEndpoints{CacheTTL: t.duration("cache_ttl", 30*time.Second, within(0, 30*time.Second))}
	for _, field := range []struct {
		key string
		to  *string
	}{{"login", &e.Login}, {"token_info", &e.TokenInfo}} {
		v, ok := t.value(field.key)
		if ok {
			d.checkSafe(v)
			*field.to = v.text
		} else if t.values != nil && !t.has(field.key) {
			t.missing(field.key, "")
		}
	}
	e.Outsiders = d.outsiders(t, tenants)
	t.done()
	if t.values == nil {
		return AuthEndpoints{}
	}
	return e
}

func (d *decoder) outsiders(t *table, tenants []string) Outsiders {
	o := Outsiders{
		Tenant:      mail.DefaultTenant,
		TenantClaim: t.text("tenant_claim", ""),
		RoleClaim:   t.text("role_claim", "role"),
		Role:        t.oneOf("role", "", outsideRoles...),
	}
	if v, ok := t.value("tenant"); ok {
		if o.Tenant = v.text; !slices.Contains(tenants, v.text) {
			d.atValue(v.spot, fmt.Sprintf("unknown tenant %s; add [tenants.NAME], or leave the line out for tenant %q", v.shown, mail.DefaultTenant)).near(v.text, tenants)
		}
		if t.has("tenant_claim") {
			d.atKey(v.spot, fmt.Sprintf("%s and %s.tenant_claim exclude each other", v.path, t.path))
		}
	}
	if o.TenantClaim != "" {
		o.Tenant = ""
	}
	if t.has("roles") {
		roles := t.table("roles")
		o.Roles = map[string]string{}
		for _, name := range roles.names() {
			o.Roles[name] = roles.oneOf(name, "", outsideRoles...)
		}
		roles.done()
	}
	return o
}

// knowsCallers reports whether the file says how callers are told apart.
func knowsCallers(auth *table) bool {
	return auth.has("keys") || auth.has("jwt") || auth.has("endpoints")
}
