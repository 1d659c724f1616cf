package signature

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Key is a private key. It is immutable, and no print verb shows it.
type Key struct {
	private ed25519.PrivateKey
	public  PublicKey
}

// PublicKey verifies signatures. It is immutable and comparable; the zero value
// verifies nothing.
type PublicKey struct {
	key string // 32 bytes
	id  string
}

// NewKey generates a key.
func NewKey() Key {
	_, private, _ := ed25519.GenerateKey(rand.Reader) // it never fails
	return keyOf(private)
}

func keyOf(private ed25519.PrivateKey) Key {
	return Key{private, publicKeyOf(private.Public().(ed25519.PublicKey))}
}

func publicKeyOf(key ed25519.PublicKey) PublicKey {
	digest, _ := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256) // of this type it always can
	return PublicKey{string(key), base64.RawURLEncoding.EncodeToString(digest)}
}

// pemType is the type of a key's PEM block.
const pemType = "PRIVATE KEY"

// ParseKey reads a key's file: exactly one PEM block of PKCS #8.
func ParseKey(file []byte) (Key, error) {
	b, rest := pem.Decode(file)
	if b == nil || b.Type != pemType || len(bytes.TrimSpace(rest)) > 0 {
		return Key{}, errors.New("it is not one PEM block " + pemType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return Key{}, errors.New("it does not hold an Ed25519 key")
	}
	return keyOf(private), nil
}

// PEM returns the key in the form of [ParseKey].
func (k Key) PEM() []byte {
	raw, _ := x509.MarshalPKCS8PrivateKey(k.private) // of this type it always can
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: raw})
}

// Private returns the key itself, for signatures of other forms.
func (k Key) Private() ed25519.PrivateKey { return k.private }

// PublicKey returns the public half.
func (k Key) PublicKey() PublicKey { return k.public }

// Format keeps every verb of package fmt from printing the key.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[key "+k.public.id+"]") }

// LogValue keeps package slog from logging the key.
func (k Key) LogValue() slog.Value { return slog.StringValue("[key " + k.public.id + "]") }

// publicKeyPrefix begins the text of a public key.
const publicKeyPrefix = "ed25519:"

// ParsePublic reads "ed25519:" and 32 bytes in base64.
func ParsePublic(text string) (PublicKey, error) {
	encoded, ok := strings.CutPrefix(text, publicKeyPrefix)
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(raw) != ed25519.PublicKeySize {
		return PublicKey{}, errors.New(`it must be "ed25519:" and 32 bytes in base64, as "skep peer key" prints it on the other host`)
	}
	return publicKeyOf(raw), nil
}

// String returns the key in the form of [ParsePublic].
func (p PublicKey) String() string {
	return publicKeyPrefix + base64.StdEncoding.EncodeToString([]byte(p.key))
}

// JWK returns the key as a JSON Web Key (https://www.rfc-editor.org/rfc/rfc8037).
func (p PublicKey) JWK() []byte {
	key := jose.JSONWebKey{Key: ed25519.PublicKey(p.key), KeyID: p.id, Algorithm: string(jose.EdDSA), Use: "sig"}
	raw, _ := key.MarshalJSON() // of this type it always can
	return raw
}

// ID is the key id in signatures: the thumbprint (RFC 7638:
// https://www.rfc-editor.org/rfc/rfc7638).
func (p PublicKey) ID() string { return p.id }
