package seal

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// manifestType is the typ of signed manifests and hub lists (U-100).
const manifestType = "manifest+jws"

// SignDocument signs a manifest or a hub list, as compact JWS: who it is of, and when it
// was made and expires, is in the header (U-101, D-U20).
func (k Key) SignDocument(payload []byte, issuer string, made, expires time.Time) (string, error) {
	jws, err := k.sign(payload, map[jose.HeaderKey]any{"typ": manifestType, "iss": issuer, "iat": made.Unix(), "exp": expires.Unix()})
	if err != nil {
		return "", err
	}
	return jws.CompactSerialize()
}

// ReadDocumentHeader returns the header of a signed manifest or hub list. Nothing in it is
// proven.
func ReadDocumentHeader(text string) (Header, error) {
	_, h, err := parseCompact(text)
	return h, err
}

// ReadDocument returns the payload of a signed manifest or hub list of an issuer, which
// one of the keys has signed. Its header names the issuer in iss, which the protocol's document
// does not have, or else by the DID of kid.
func ReadDocument(text, issuer string, keys []PublicKey, now time.Time) ([]byte, error) {
	jws, h, err := parseCompact(text)
	if err != nil {
		return nil, err
	}
	head := jws.Signatures[0].Protected.ExtraHeaders
	named, _ := head["iss"].(string)
	if head["iss"] == nil {
		named, _, _ = strings.Cut(h.KeyID, "#")
	}
	expires, ok := at(seconds(head["exp"]))
	switch {
	case h.typ != manifestType:
		return nil, fail("its typ is not %s", manifestType)
	case named != issuer:
		return nil, fail("it is of the issuer %.200q", named)
	case !ok || !expires.IsZero() && !now.Before(expires):
		return nil, fail("it has expired")
	}
	for _, k := range h.candidates(keys) {
		if payload, err := jws.Verify(k.key); err == nil {
			return payload, nil
		}
	}
	return nil, fail("it is not signed by its issuer")
}

// seconds is a number of a header.
func seconds(value any) *float64 {
	switch value := value.(type) {
	case float64:
		return &value
	case json.Number:
		if f, err := value.Float64(); err == nil {
			return &f
		}
	case nil:
		return nil
	}
	none := -1.0
	return &none
}
