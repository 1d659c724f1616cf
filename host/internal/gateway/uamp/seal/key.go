package seal

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// algorithms are the only ones of the document (U-022).
var algorithms = []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256}

// PublicKey verifies signatures of one agent: Ed25519 or P-256.
type PublicKey struct {
	// ID is a DID URL, as in did:web:lab.example#k1; empty for a key that is found without
	// one.
	ID  string
	key crypto.PublicKey
}

// Key signs. No print verb shows it.
type Key struct {
	public  PublicKey
	private crypto.Signer
}

// NewKey returns a key under an id.
func NewKey(id string, private crypto.Signer) (Key, error) {
	public, err := newPublic(id, private.Public())
	return Key{public, private}, err
}

// Public returns the public half.
func (k Key) Public() PublicKey { return k.public }

// WithID returns the key under another id: an agent's DID has one of its own.
func (k Key) WithID(id string) Key {
	k.public.ID = id
	return k
}

// Format keeps every verb of package fmt from printing the key.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[key "+k.public.ID+"]") }

func newPublic(id string, key crypto.PublicKey) (PublicKey, error) {
	switch key := key.(type) {
	case ed25519.PublicKey:
		// A point of low order verifies what anybody has signed; the library writes none.
		if _, err := (&jose.JSONWebKey{Key: key}).MarshalJSON(); err != nil {
			return PublicKey{}, reasonOf(err)
		}
		return PublicKey{id, key}, nil
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return PublicKey{id, key}, nil
		}
	}
	return PublicKey{}, errors.New("the key is neither of Ed25519 nor of P-256")
}

// algorithm is the only one with which the key verifies.
func (p PublicKey) algorithm() algorithm {
	if _, ok := p.key.(ed25519.PublicKey); ok {
		return jose.EdDSA
	}
	return jose.ES256
}

// Equal reports whether two keys are the same, whatever their ids.
func (p PublicKey) Equal(other PublicKey) bool {
	return p.key != nil && other.key != nil && bytes.Equal(p.JWK(), other.JWK())
}

// JWK returns the key as a JSON Web Key without an id.
func (p PublicKey) JWK() json.RawMessage {
	raw, _ := (&jose.JSONWebKey{Key: p.key}).MarshalJSON() // of these keys it always can
	return raw
}

// Thumbprint is the id of the key in our DID documents (RFC 7638).
func (p PublicKey) Thumbprint() string {
	sum, _ := (&jose.JSONWebKey{Key: p.key}).Thumbprint(crypto.SHA256) // of these keys it always can
	return base64.RawURLEncoding.EncodeToString(sum)
}

// reasonOf is an error of the library without its name.
func reasonOf(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "go-jose/go-jose: "))
}

// ParseJWK reads a public JSON Web Key for signatures.
func ParseJWK(id string, text []byte) (PublicKey, error) {
	var k jose.JSONWebKey
	if block, _ := pem.Decode(text); block != nil {
		return PublicKey{}, fmt.Errorf("it is a %s in PEM: write it as JSON, as in {\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": …}", block.Type)
	}
	if err := k.UnmarshalJSON(text); err != nil {
		return PublicKey{}, fmt.Errorf("it is not a JSON Web Key: %w", reasonOf(err))
	}
	if !k.IsPublic() || k.Use != "" && k.Use != "sig" {
		return PublicKey{}, errors.New("it is not a public JSON Web Key for signatures")
	}
	p, err := newPublic(id, k.Key)
	if err == nil && k.Algorithm != "" && k.Algorithm != string(p.algorithm()) {
		return PublicKey{}, fmt.Errorf("its alg is %.20q, which is not of its type", k.Algorithm)
	}
	return p, err
}
