package oidc

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Limits of a key set.
const (
	maxKeys   = 64
	minRSA    = 2048 // bits
	minSecret = 32   // bytes
)

// Asymmetric are the algorithms whose keys an issuer can publish. Symmetric are
// those whose key issuer and host share.
var (
	Asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	Symmetric  = []string{"HS256", "HS384", "HS512"}
)

// key is a key that verifies signatures.
type key struct {
	id string
	// alg is the key's only algorithm, empty when the set names none.
	alg   string
	value any
}

// supports reports whether the key may verify signatures of an algorithm. Each
// kind of key has its own algorithms: a public key is never used as a shared
// secret.
func (k key) supports(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch v := k.value.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[v.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	case []byte:
		return strings.HasPrefix(alg, "HS")
	}
	return false
}

// parseKeySet reads a JSON Web Key Set. It skips keys for other purposes and of
// unknown kinds. Shared secrets are accepted only from the host's own set.
func parseKeySet(text []byte, own bool) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New(`it is not a JSON Web Key Set, {"keys": [...]}`)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, at most %d", len(set.Keys), maxKeys)
	}
	var keys []key
	for i, raw := range set.Keys {
		k, err := parseKey(raw, own)
		switch {
		case errors.Is(err, errOtherPurpose):
		case err != nil && own:
			return nil, fmt.Errorf("keys[%d] %w", i, err)
		case err == nil:
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("it has no key that signatures can be checked with")
	}
	return keys, nil
}

// errOtherPurpose means that a key does not verify signatures.
var errOtherPurpose = errors.New("is for something else")

func parseKey(raw []byte, own bool) (key, error) {
	var j jose.JSONWebKey
	if err := j.UnmarshalJSON(raw); errors.Is(err, jose.ErrUnsupportedKeyType) {
		return key{}, errOtherPurpose
	} else if err != nil {
		return key{}, fmt.Errorf("is no JSON Web Key: %w", err)
	}
	k := key{j.KeyID, j.Algorithm, j.Key}
	secret, isSecret := j.Key.([]byte)
	public, isRSA := j.Key.(*rsa.PublicKey)
	switch {
	case j.Use != "" && j.Use != "sig":
		return k, errOtherPurpose
	case isSecret && !own:
		return k, errors.New("is a secret that was published")
	case isSecret && len(secret) < minSecret:
		return k, fmt.Errorf("has %d bytes; a shared secret needs %d", len(secret), minSecret)
	case !isSecret && !j.IsPublic():
		return k, errors.New("is a private key; only the issuer may have it: take the public one")
	case isRSA && public.N.BitLen() < minRSA:
		return k, fmt.Errorf("has %d bits; an RSA key needs %d", public.N.BitLen(), minRSA)
	}
	return k, nil
}

// CheckKeySet returns the fault of the host's own key set.
func CheckKeySet(text string) error {
	_, err := parseKeySet([]byte(text), true)
	return err
}

// CheckSigningKey returns why a text is no private JSON Web Key of Ed25519 or P-256, nil if it is one.
func CheckSigningKey(text string) error {
	var key jose.JSONWebKey
	if err := key.UnmarshalJSON([]byte(text)); err != nil {
		return errors.New("it is no JSON Web Key")
	}
	switch private := key.Key.(type) {
	case ed25519.PrivateKey:
		return nil
	case *ecdsa.PrivateKey:
		if private.Curve == elliptic.P256() {
			return nil
		}
	}
	return errors.New("it is no private key of Ed25519 or P-256")
}

// matchKeys returns the keys that may have made a signature.
func matchKeys(keys []key, id, alg string) (found []key) {
	for _, k := range keys {
		if k.supports(alg) && (id == "" || k.id == id) {
			found = append(found, k)
		}
	}
	return found
}
