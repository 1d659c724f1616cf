package config

import (
	"fmt"
	"slices"
	"time"

	"skep/host/internal/api/oidc"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// JWT is the [auth.jwt] table; Issuer is empty without one.
type JWT struct {
	Issuer     string
	Audience   string
	Keys       Secret // a JSON Web Key Set, which may hold a shared secret; empty when it is to be fetched
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
	Agents      []string          // ids that may have role agent
}

// outsideRoles are the roles that an authority outside the host may give.
var outsideRoles = []string{RoleAdmin, RoleUser, RoleAgent}

func (j *JWT) Settings() []Setting {
	return append([]Setting{
		text(&j.Issuer, "issuer", "Who signs the tokens.").neededElsewhere(),
		text(&j.Audience, "audience", "Whom the tokens are for.").neededElsewhere(),
		readElsewhere(&j.Keys, "keys", "string", "A JSON Web Key Set, as in `file::jwks.json`."),
		readElsewhere(&j.KeysURL, "keys_url", "URL", "Where the key set is; without `keys` and `keys_url` the issuer is asked."),
		readElsewhere(&j.Algorithms, "algorithms", "list of strings", "What tokens may be signed with."),
		span(&j.Leeway, "leeway", 30*time.Second, 0, 5*time.Minute, "How far clocks may differ."),
	}, j.Outsiders.Settings()...)
}

func (d *decoder) jwt(t *table, local string, tenants []string) JWT {
	var j JWT
	t.read(j.Settings())
	for _, s := range j.Settings()[:2] {
		if s.empty() && t.values != nil {
			t.missing(s.Key, "; a token must be told from one for another service")
		}
	}
	d.jwtKeys(t, &j)
	j.Algorithms = d.algorithms(t, j.Keys != "")
	d.outsiders(t, &j.Outsiders, local, tenants)
	t.refuseUnknown()
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
		d.atKey(place.location, fmt.Sprintf("%s and %s exclude each other", keys.path, place.path))
	case isHere:
		if err := oidc.CheckKeySet(keys.text); err != nil {
			d.atValue(keys.location, fmt.Sprintf(`%s must be a JSON Web Key Set, as in "file::jwks.json": %s`, keys.path, err))
		}
	case isThere:
		d.checkSafe(place)
	case named && !t.has("keys"):
		if oidc.CheckURL(issuer.text) != nil {
			d.atValue(issuer.location, fmt.Sprintf("%s is where its keys are asked for, and must begin with https://; or give keys or keys_url", issuer.path))
		} else {
			d.checkCalled(issuer)
		}
	}
	j.Keys, j.KeysURL = Secret(keys.text), place.text
}

// checkSafe holds an address that keys or tokens are sent to, or come from.
func (d *decoder) checkSafe(v value) {
	if oidc.CheckURL(v.text) != nil {
		d.atValue(v.location, fmt.Sprintf("%s must begin with https://, which %s does not; plain http:// is for this machine only", v.path, v.shown))
	} else {
		d.checkCalled(v)
	}
}

// checkCalled refuses an address to which no request can be made.
func (d *decoder) checkCalled(v value) {
	if err := egress.CheckURL(v.text); err != nil {
		d.atValue(v.location, fmt.Sprintf("%s: %s", v.path, err))
	}
}

// algorithms reads what tokens may be signed with. A shared secret is never
// fetched.
func (d *decoder) algorithms(t *table, own bool) []string {
	allowed := oidc.Asymmetric
	if own {
		allowed = slices.Concat(oidc.Asymmetric, oidc.Symmetric)
	}
	items := t.list("algorithms")
	for _, v := range items {
		switch {
		case slices.Contains(allowed, v.text):
		case slices.Contains(oidc.Symmetric, v.text):
			d.atValue(v.location, fmt.Sprintf("%s needs a shared secret, which is never fetched; give it in keys", v.shown))
		default:
			d.atValue(v.location, fmt.Sprintf("%s is not one of %s", v.shown, listOf(allowed))).near(v.text, allowed)
		}
	}
	if t.has("algorithms") && len(items) == 0 {
		d.atKey(t.child("algorithms"), t.path+".algorithms must name at least one")
	}
	return textsOf(items)
}

func (e *AuthEndpoints) Settings() []Setting {
	return append([]Setting{
		field(&e.Login, "login", "URL", (*table).safeURL, "Where users are sent to log in.").needed(""),
		field(&e.TokenInfo, "token_info", "URL", (*table).safeURL, "Who a token belongs to is asked there.").needed(""),
		span(&e.CacheTTL, "cache_ttl", 30*time.Second, 0, 30*time.Second, "How long an answer holds."),
	}, e.Outsiders.Settings()...)
}

func (d *decoder) endpoints(t *table, local string, tenants []string) AuthEndpoints {
	var e AuthEndpoints
	t.read(e.Settings())
	d.outsiders(t, &e.Outsiders, local, tenants)
	t.refuseUnknown()
	if t.values == nil {
		return AuthEndpoints{}
	}
	return e
}

// safeURL reads an address that tokens are sent to.
func (t *table) safeURL(key string) string {
	v, ok := t.value(key)
	if ok {
		t.d.checkSafe(v)
	}
	return v.text
}

func (o *Outsiders) Settings() []Setting {
	return []Setting{
		readElsewhere(&o.Tenant, "tenant", "string", "The tenant of all of them.").withDefaultText(mail.DefaultTenant),
		text(&o.TenantClaim, "tenant_claim", "The claim that names the tenant; excludes `tenant`."),
		field(&o.RoleClaim, "role_claim", "string", func(t *table, key string) string { return t.text(key, "role") }, "The claim that names the role.").withDefaultText("role"),
		readElsewhere(&o.Roles, "roles", "table", "Roles by the claim's words; without it the words are the roles."),
		readElsewhere(&o.Agents, "agents", "list of strings", "Ids that may have the role `agent`: the swarms that the authority may vouch for. Without it there are none."),
		choice(&o.Role, "role", "", outsideRoles, "The role of callers whose token names none; without it they are refused."),
	}
}

// outsiders reads what the settings leave to it.
func (d *decoder) outsiders(t *table, o *Outsiders, local string, tenants []string) {
	o.Tenant = mail.DefaultTenant
	if v, ok := t.value("tenant"); ok {
		if o.Tenant = v.text; !slices.Contains(tenants, v.text) {
			d.atValue(v.location, fmt.Sprintf("unknown tenant %s; add [tenants.NAME], or leave the line out for tenant %q", v.shown, mail.DefaultTenant)).near(v.text, tenants)
		}
		if t.has("tenant_claim") {
			d.atKey(v.location, fmt.Sprintf("%s and %s.tenant_claim exclude each other", v.path, t.path))
		}
	}
	if o.TenantClaim != "" {
		o.Tenant = ""
	}
	if t.has("agents") {
		agents := t.list("agents")
		for _, v := range agents {
			d.otherSwarm(v, local)
		}
		o.Agents = textsOf(agents)
	}
	if t.has("roles") {
		roles := t.table("roles")
		o.Roles = map[string]string{}
		for _, name := range roles.names() {
			o.Roles[name] = roles.oneOf(name, "", outsideRoles...)
		}
		roles.refuseUnknown()
	}
}

// knowsCallers reports whether the file names keys or authorities of callers.
func knowsCallers(auth *table) bool {
	return auth.has("keys") || auth.has("jwt") || auth.has("endpoints")
}
