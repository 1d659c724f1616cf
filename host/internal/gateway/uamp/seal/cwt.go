package seal

import (
	"encoding/base64"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-jose/go-jose/v4"
	"github.com/veraison/go-cose"
)

// Tags before a CBOR Web Token (https://www.rfc-editor.org/rfc/rfc8392#section-6).
const (
	tagCWT   = 61
	tagSign1 = 18
)

// coseAlgorithms are the algorithms of both forms.
var coseAlgorithms = map[cose.Algorithm]algorithm{cose.AlgorithmES256: jose.ES256, cose.AlgorithmEdDSA: jose.EdDSA}

// readCBOR reads what has one reading, within limits.
func readCBOR(raw []byte, v any) error {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, UTF8: cbor.UTF8RejectInvalid,
		MaxNestedLevels: maxClaimsDepth, MaxArrayElements: 64, MaxMapPairs: 64,
	}.DecMode()
	if err != nil {
		return err
	}
	return mode.Unmarshal(raw, v)
}

// readCWT reads a CBOR Web Token that is a COSE_Sign1, with or without its tags (U-043).
func readCWT(text string) (t Token, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return t, failToken("it is neither a JSON Web Token nor a CBOR Web Token in base64url")
	}
	for _, number := range []uint64{tagCWT, tagSign1} {
		var tag cbor.RawTag
		if readCBOR(raw, &tag) == nil && tag.Number == number {
			raw = tag.Content
		}
	}
	var m cose.UntaggedSign1Message
	if err := m.UnmarshalCBOR(raw); err != nil {
		return t, failToken("it is no COSE_Sign1")
	}
	alg, err := m.Headers.Protected.Algorithm()
	joseAlg, known := coseAlgorithms[alg]
	if err != nil || !known {
		return t, failToken("it is not signed with ES256 or EdDSA")
	}
	if _, has := m.Headers.Protected[cose.HeaderLabelCritical]; has {
		return t, failToken("its header has crit, which asks for an extension")
	}
	id, _ := m.Headers.Protected[cose.HeaderLabelKeyID].([]byte)
	if id == nil {
		id, _ = m.Headers.Unprotected[cose.HeaderLabelKeyID].([]byte)
	}
	var w wireClaims
	if readCBOR(m.Payload, &w) != nil {
		return t, failToken("its claims cannot be read")
	}
	t.KeyID, t.alg = string(id), joseAlg
	t.verify = func(k PublicKey) error {
		v, err := cose.NewVerifier(alg, k.key)
		if err != nil {
			return err
		}
		return m.Verify(nil, v)
	}
	t.Claims, err = w.claims()
	return t, err
}
