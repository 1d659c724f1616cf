package oidc_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/oidc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ring are keys of an issuer, made once: they take a while.
var ring = sync.OnceValue(func() (r struct {
	rsa, weak *rsa.PrivateKey
	ec        *ecdsa.PrivateKey
	ed        ed25519.PrivateKey
	secret    []byte
}) {
	r.rsa, _ = rsa.GenerateKey(rand.Reader, 2048)
	r.weak, _ = rsa.GenerateKey(rand.Reader, 1024)
	r.ec, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, r.ed, _ = ed25519.GenerateKey(rand.Reader)
	r.secret = []byte("a shared secret of 32 bytes, yes")
	return r
})

const (
	issuer   = "https://login.example.com/"
	audience = "skep"
)

var now = time.Unix(1_800_000_000, 0)

// jwk is a public key, or a secret, as it stands in a set.
func jwk(id, alg string, k any) jose.JSONWebKey {
	if s, ok := k.([]byte); ok {
		return jose.JSONWebKey{Key: s, KeyID: id, Algorithm: alg}
	}
	full := jose.JSONWebKey{Key: k, KeyID: id, Algorithm: alg}
	public := full.Public()
	return public
}

func set(t testing.TB, keys ...jose.JSONWebKey) string {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

type claims map[string]any

// good are the claims of a token that is good; change alters them, nil removes.
func good(change claims) claims {
	c := claims{"iss": issuer, "aud": audience, "sub": "alice", "exp": now.Unix() + 60, "iat": now.Unix(), "role": "user"}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

// sign makes a token.
func sign(t testing.TB, alg, kid string, k any, head map[string]string, c claims) string {
	t.Helper()
	opt := (&jose.SignerOptions{}).WithType("JWT")
	for name, v := range head {
		opt = opt.WithHeader(jose.HeaderKey(name), v)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: jose.JSONWebKey{Key: k, KeyID: kid}}, opt)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := s.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := obj.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// forge makes a token of a header and claims, with any bytes as its signature.
func forge(head, c any, signature []byte) string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	return part(head) + "." + part(c) + "." + base64.RawURLEncoding.EncodeToString(signature)
}

var mapping = oidc.Mapping{Tenant: "default", Tenants: []string{"default", "acme"}, RoleClaim: "role", Agents: []string{"depot"}}

func newJWT(t testing.TB, change func(*oidc.JWTOptions)) *oidc.JWT {
	t.Helper()
	opt := oidc.JWTOptions{
		Issuer: issuer, Audience: audience, Leeway: 10 * time.Second, Mapping: mapping,
		Keys: set(t, jwk("r", "", ring().rsa), jwk("e", "ES256", ring().ec), jwk("d", "", ring().ed)),
		Now:  func() time.Time { return now },
	}
	if change != nil {
		change(&opt)
	}
	j, err := oidc.NewJWT(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

func TestJWT(t *testing.T) {
	t.Parallel()
	j := newJWT(t, nil)
	r := ring()
	for name, c := range map[string]struct{ token, want string }{
		"RS256":        {sign(t, "RS256", "r", r.rsa, nil, good(nil)), "default/user:alice"},
		"PS512":        {sign(t, "PS512", "r", r.rsa, nil, good(nil)), "default/user:alice"},
		"ES256":        {sign(t, "ES256", "e", r.ec, nil, good(nil)), "default/user:alice"},
		"EdDSA":        {sign(t, "EdDSA", "d", r.ed, nil, good(nil)), "default/user:alice"},
		"no key id":    {sign(t, "EdDSA", "", r.ed, nil, good(nil)), "default/user:alice"},
		"admin":        {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"role": "admin"})), "default/admin:alice"},
		"agent":        {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"role": "agent", "sub": "depot"})), "default/agent:depot"},
		"audiences":    {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"aud": []string{"other", audience}})), "default/user:alice"},
		"just expired": {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"exp": now.Unix() - 9})), "default/user:alice"},
		"a fast clock": {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"nbf": now.Unix() + 9, "iat": now.Unix() + 9})), "default/user:alice"},
		"at+jwt":       {sign(t, "EdDSA", "d", r.ed, map[string]string{"typ": "at+JWT"}, good(nil)), "default/user:alice"},
		"strange id":   {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"sub": "auth0|a~b@c/d\n"})), "default/user:auth0~7ca~7eb~40c~2fd~0a"},
	} {
		if p, err := j.Authenticate(t.Context(), c.token); err != nil || p.String() != c.want {
			t.Errorf("%s: %v, %v, want %s", name, p, err, c.want)
		}
	}
}

func TestJWTRefuses(t *testing.T) {
	t.Parallel()
	j := newJWT(t, nil)
	r := ring()
	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	whole := sign(t, "EdDSA", "d", r.ed, nil, good(nil))
	parts := strings.Split(whole, ".")
	admin := forge(nil, good(claims{"role": "admin"}), nil)
	public := set(t, jwk("", "", r.rsa))
	for name, c := range map[string]struct{ token, reason string }{
		"alg none":           {forge(claims{"alg": "none", "typ": "JWT"}, good(nil), nil), "not allowed"},
		"alg None":           {forge(claims{"alg": "None"}, good(nil), []byte("x")), "not allowed"},
		"no alg":             {forge(claims{}, good(nil), []byte("x")), "not allowed"},
		"HS with RSA key":    {sign(t, "HS256", "r", []byte(public), nil, good(nil)), "not allowed"},
		"of a stranger":      {sign(t, "EdDSA", "d", stranger, nil, good(nil)), "signature is wrong"},
		"another's key id":   {sign(t, "EdDSA", "r", r.ed, nil, good(nil)), "no key"},
		"unknown key id":     {sign(t, "EdDSA", "x", r.ed, nil, good(nil)), "no key of its id for EdDSA"},
		"wrong alg of a key": {sign(t, "RS256", "e", r.rsa, nil, good(nil)), "no key"},
		"no signature":       {parts[0] + "." + parts[1] + ".", "signature is wrong"},
		"other claims":       {parts[0] + "." + strings.Split(admin, ".")[1] + "." + parts[2], "signature is wrong"},
		"other header":       {strings.Split(forge(claims{"alg": "EdDSA", "kid": "d"}, nil, nil), ".")[0] + "." + parts[1] + "." + parts[2], "signature is wrong"},
		"own key in it":      {sign(t, "EdDSA", "", stranger, map[string]string{"jku": "https://evil.example/keys"}, good(nil)), "signature is wrong"},
		"critical header":    {forge(claims{"alg": "EdDSA", "crit": []string{"x"}, "x": 1}, good(nil), []byte("x")), ""},
		"logout token":       {sign(t, "EdDSA", "d", r.ed, map[string]string{"typ": "logout+jwt"}, good(nil)), "a type that opens nothing"},
		"too long":           {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"x": strings.Repeat("x", 20_000)})), "more than"},
		"no issuer":          {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"iss": nil})), "another issuer"},
		"another issuer":     {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"iss": "https://login.example.com"})), `it says issuer "https://login.example.com"; [auth.jwt] issuer is "`},
		"no audience":        {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"aud": nil})), "another audience"},
		"another audience":   {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"aud": []string{"skep2"}})), "another audience"},
		"no expiry":          {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"exp": nil})), "never expires"},
		"expired":            {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"exp": now.Unix() - 11})), "has expired"},
		"not yet":            {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"nbf": now.Unix() + 11})), "not valid yet"},
		"of tomorrow":        {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"iat": now.Unix() + 11})), "in the future"},
		"expiry no number":   {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"exp": "never"})), "claims cannot be read"},
		"no subject":         {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"sub": nil})), "names nobody"},
		"long subject":       {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"sub": strings.Repeat("a", 129)})), "too long"},
		"no role":            {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"role": nil})), "no role"},
		"unknown role":       {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"role": "root"})), "no role"},
		"operator":           {sign(t, "EdDSA", "d", r.ed, nil, good(claims{"role": "operator"})), "no role"},
		"garbage":            {"a.b.c", "malformed"},
		"empty parts":        {"..", "malformed"},
	} {
		p, err := j.Authenticate(t.Context(), c.token)
		var unknown *auth.Unknown
		if !errors.As(err, &unknown) || !errors.Is(err, auth.ErrUnknown) || !strings.Contains(unknown.Reason, c.reason) || unknown.Detail != "invalid token" {
			t.Errorf("%s: %v, %v, want a refusal with %q", name, p, err, c.reason)
		} else if strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: the reason shows the token", name)
		}
	}
	for _, token := range []string{"", "skep_x", "a.b", "a.b.c.d"} {
		if j.Claims(token) {
			t.Errorf("it claims %q", token)
		}
		if _, err := j.Authenticate(t.Context(), token); !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// No byte of a token can be changed.
func TestJWTEveryByte(t *testing.T) {
	t.Parallel()
	j := newJWT(t, nil)
	whole := []byte(sign(t, "EdDSA", "d", ring().ed, nil, good(nil)))
	for i := range whole {
		for _, to := range []byte{'A', 'x', '.', '=', '\n', 0} {
			if whole[i] == to || i == len(whole)-1 {
				// The last character has bits that base64 does not use.
				continue
			}
			altered := append([]byte(nil), whole...)
			altered[i] = to
			if p, err := j.Authenticate(t.Context(), string(altered)); err == nil {
				t.Errorf("byte %d as %q: %v", i, to, p)
			}
		}
	}
}

// A shared secret works when its algorithm is configured, and only with its own
// algorithms.
func TestJWTSecret(t *testing.T) {
	t.Parallel()
	r := ring()
	keys := set(t, jwk("s", "HS256", r.secret), jwk("r", "", r.rsa))
	j := newJWT(t, func(o *oidc.JWTOptions) { o.Keys, o.Algorithms = keys, []string{"HS256", "HS512", "RS256"} })
	if p, err := j.Authenticate(t.Context(), sign(t, "HS256", "s", r.secret, nil, good(nil))); err != nil {
		t.Errorf("%v, %v", p, err)
	}
	public := set(t, jwk("", "", r.rsa))
	for name, token := range map[string]string{
		"another algorithm of the secret": sign(t, "HS512", "s", append(r.secret, r.secret...), nil, good(nil)),
		"the public key as a secret":      sign(t, "HS256", "r", []byte(public), nil, good(nil)),
		"the public key without an id":    sign(t, "HS256", "", []byte(public), nil, good(nil)),
	} {
		if p, err := j.Authenticate(t.Context(), token); !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestNewJWTRefuses(t *testing.T) {
	t.Parallel()
	r := ring()
	private, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: r.ed, KeyID: "d"}}})
	for name, c := range map[string]struct {
		change func(*oidc.JWTOptions)
		want   string
	}{
		"no issuer":       {func(o *oidc.JWTOptions) { o.Issuer = "" }, "needs issuer and audience"},
		"no audience":     {func(o *oidc.JWTOptions) { o.Audience = "" }, "needs issuer and audience"},
		"none":            {func(o *oidc.JWTOptions) { o.Algorithms = []string{"none"} }, `"none" cannot be used`},
		"published HS":    {func(o *oidc.JWTOptions) { o.Keys, o.Algorithms = "", []string{"HS256"} }, `"HS256" cannot be used`},
		"no JSON":         {func(o *oidc.JWTOptions) { o.Keys = "x" }, "not a JSON Web Key Set"},
		"no keys":         {func(o *oidc.JWTOptions) { o.Keys = `{"keys":[]}` }, "no key"},
		"private key":     {func(o *oidc.JWTOptions) { o.Keys = string(private) }, "keys[0] is a private key"},
		"weak RSA":        {func(o *oidc.JWTOptions) { o.Keys = set(t, jwk("w", "", r.weak)) }, "has 1024 bits"},
		"short secret":    {func(o *oidc.JWTOptions) { o.Keys = set(t, jwk("s", "", []byte("short"))) }, "has 5 bytes"},
		"broken key":      {func(o *oidc.JWTOptions) { o.Keys = `{"keys":[{"kty":"RSA","n":"x"}]}` }, "is no JSON Web Key"},
		"for secrecy":     {func(o *oidc.JWTOptions) { o.Keys = `{"keys":[{"kty":"oct","use":"enc","k":"AAAA"}]}` }, "no key"},
		"unknown kind":    {func(o *oidc.JWTOptions) { o.Keys = `{"keys":[{"kty":"XX"}]}` }, "no key"},
		"too many":        {func(o *oidc.JWTOptions) { o.Keys = `{"keys":[` + strings.Repeat("{},", 64) + `{}]}` }, "has 65 keys"},
		"plain discovery": {func(o *oidc.JWTOptions) { o.Keys, o.Issuer = "", "http://login.example.com" }, "must begin with https://"},
		"plain keys":      {func(o *oidc.JWTOptions) { o.Keys, o.URL = "", "http://login.example.com/keys" }, "must begin with https://"},
		"no URL":          {func(o *oidc.JWTOptions) { o.Keys, o.URL = "", "keys" }, "is no URL"},
	} {
		opt := oidc.JWTOptions{Issuer: issuer, Audience: audience, Mapping: mapping, Keys: set(t, jwk("d", "", r.ed))}
		c.change(&opt)
		if _, err := oidc.NewJWT(opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	keycloak := oidc.Mapping{
		TenantClaim: "org", Tenants: []string{"default", "acme"}, RoleClaim: "realm_access.roles",
		Roles: map[string]auth.Role{"skep-admin": auth.Admin, "staff": auth.User},
	}
	url := keycloak
	url.RoleClaim, url.Role = "https://example.com/role", auth.User
	peers, none := mapping, mapping
	none.Agents = nil
	peers.Agents = []string{"depot", "alice"}
	access := func(roles ...string) claims { return claims{"roles": roles} }
	for name, c := range map[string]struct {
		m    oidc.Mapping
		more claims
		want string
	}{
		"the highest":         {keycloak, claims{"org": "acme", "realm_access": access("x", "staff", "skep-admin")}, "acme/admin:alice"},
		"one of several":      {keycloak, claims{"org": "acme", "realm_access": access("x", "staff")}, "acme/user:alice"},
		"not by its own name": {keycloak, claims{"org": "acme", "realm_access": access("admin")}, ""},
		"not on top":          {keycloak, claims{"org": "acme", "roles": []string{"staff"}}, ""},
		"no tenant":           {keycloak, claims{"realm_access": access("staff")}, ""},
		"unknown tenant":      {keycloak, claims{"org": "globex", "realm_access": access("staff")}, ""},
		"tenant no text":      {keycloak, claims{"org": []string{"acme"}, "realm_access": access("staff")}, ""},
		"a name with dots":    {url, claims{"org": "acme", "https://example.com/role": "skep-admin"}, "acme/admin:alice"},
		"the fallback":        {url, claims{"org": "acme"}, "acme/user:alice"},
		"an agent":            {none, claims{"role": "agent"}, ""},
		"the operator's peer": {peers, claims{"role": "agent"}, "default/agent:alice"},
		"another's peer":      {peers, claims{"role": "agent", "sub": "hive"}, ""},
		"a fixed tenant":      {mapping, claims{"tenant": "acme", "role": "user"}, "default/user:alice"},
	} {
		j := newJWT(t, func(o *oidc.JWTOptions) { o.Mapping = c.m })
		token := sign(t, "EdDSA", "d", ring().ed, nil, good(claims{"role": nil}).with(c.more))
		p, err := j.Authenticate(t.Context(), token)
		if got := p.String(); (err == nil) != (c.want != "") || err == nil && got != c.want {
			t.Errorf("%s: %s, %v, want %q", name, got, err, c.want)
		}
	}
}

func (c claims) with(more claims) claims {
	for k, v := range more {
		c[k] = v
	}
	return c
}

func BenchmarkJWT(b *testing.B) {
	r := ring()
	j := newJWT(b, nil)
	for alg, k := range map[string]struct {
		id  string
		key any
	}{"RS256": {"r", r.rsa}, "ES256": {"e", r.ec}, "EdDSA": {"d", r.ed}} {
		token := sign(b, alg, k.id, k.key, nil, good(nil))
		b.Run(alg, func(b *testing.B) {
			for b.Loop() {
				if _, err := j.Authenticate(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
