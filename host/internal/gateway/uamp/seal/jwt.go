package seal

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/gateway/wire"
)

// tokenType is the typ of tokens of ours.
const tokenType = "JWT"

// maxClaimsDepth bounds the levels of a token's claims.
const maxClaimsDepth = 8

// wireClaims are the claims of a JSON Web Token, and of a CBOR Web Token under the numbers
// of RFC 8392 and RFC 9200.
type wireClaims struct {
	Issuer    string   `json:"iss" cbor:"1,keyasint,omitempty"`
	Subject   string   `json:"sub,omitempty" cbor:"2,keyasint,omitempty"`
	Audience  any      `json:"aud" cbor:"3,keyasint,omitempty"`
	Expires   *float64 `json:"exp" cbor:"4,keyasint,omitempty"`
	NotBefore *float64 `json:"nbf,omitempty" cbor:"5,keyasint,omitempty"`
	Scope     any      `json:"scope" cbor:"9,keyasint,omitempty"`
}

func (w wireClaims) claims() (c Claims, err error) {
	var ok [4]bool
	c.Issuer, c.Subject = w.Issuer, w.Subject
	c.Audience, ok[0] = texts(w.Audience)
	c.Scope, ok[1] = scopes(w.Scope)
	c.Expires, ok[2] = at(w.Expires)
	c.NotBefore, ok[3] = at(w.NotBefore)
	if i := slices.Index(ok[:], false); i >= 0 {
		return c, failToken("its %s has not the type of this claim", [...]string{"aud", "scope", "exp", "nbf"}[i])
	}
	return c, nil
}

// readJWT reads a JSON Web Token.
func readJWT(text string) (t Token, err error) {
	jws, h, err := parseCompact(text)
	var f failure
	switch {
	case errors.As(err, &f):
		return t, failToken("%s", f.why)
	case err != nil:
		return t, err
	case h.typ == manifestType:
		return t, failToken("it is a manifest")
	}
	payload := jws.UnsafePayloadWithoutVerification()
	var w wireClaims
	if _, err := wire.Canonical(payload, wire.AsSent, maxClaimsDepth); err != nil || json.Unmarshal(payload, &w) != nil {
		return t, failToken("its claims cannot be read")
	}
	t.KeyID, t.alg = h.KeyID, h.alg
	t.verify = func(k PublicKey) error {
		_, err := jws.Verify(k.key)
		return err
	}
	t.Claims, err = w.claims()
	return t, err
}

// Grant makes a JSON Web Token. Its scope is a text, as in OAuth
// (https://www.rfc-editor.org/rfc/rfc8693#section-4.2).
func (k Key) Grant(c Claims) (string, error) {
	expires := float64(c.Expires.Unix())
	payload, err := json.Marshal(wireClaims{Issuer: c.Issuer, Subject: c.Subject, Audience: c.Audience, Scope: strings.Join(c.Scope, " "), Expires: &expires})
	if err != nil {
		return "", err
	}
	jws, err := k.sign(payload, map[jose.HeaderKey]any{"typ": tokenType})
	if err != nil {
		return "", err
	}
	return jws.CompactSerialize()
}
