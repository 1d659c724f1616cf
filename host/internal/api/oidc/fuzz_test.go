package oidc_test

import (
	"errors"
	"strings"
	"testing"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/oidc"
)

// No text opens anything that the issuer has not signed.
func FuzzJWT(f *testing.F) {
	r := ring()
	j := newJWT(f, nil)
	whole := sign(f, "EdDSA", "d", r.ed, nil, good(nil))
	f.Add(whole)
	f.Add(forge(claims{"alg": "none"}, good(nil), nil))
	f.Add(forge(claims{"alg": "HS256", "kid": "r"}, good(nil), []byte("x")))
	f.Add(forge(claims{"alg": "EdDSA", "jwk": claims{"kty": "OKP"}}, good(nil), []byte("x")))
	f.Add("..")
	signed := whole[:strings.LastIndexByte(whole, '.')]
	f.Fuzz(func(t *testing.T, token string) {
		p, err := j.Authenticate(t.Context(), token)
		if err == nil && !strings.HasPrefix(token, signed) {
			t.Errorf("%q is %v", token, p)
		}
		if err != nil && !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%q: %v", token, err)
		}
	})
}

// A key set of whatever form is read or refused.
func FuzzKeySet(f *testing.F) {
	r := ring()
	f.Add(set(f, jwk("r", "RS256", r.rsa), jwk("e", "", r.ec), jwk("s", "", r.secret)))
	f.Add(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`)
	f.Add(`{"keys":[null,{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if err := oidc.CheckKeySet(text); err != nil && err.Error() == "" {
			t.Error("a refusal without words")
		}
	})
}
