package envelope

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

// Key signs. It is immutable, and no print verb shows it.
type Key struct {
	private ed25519.PrivateKey
	public  Public
}

// Public verifies what the key has signed that it belongs to. It is immutable and
// comparable; the zero value verifies nothing.
type Public struct {
	key string // 32 bytes
	id  string
}

// NewKey makes a key.
func NewKey() Key {
	_, private, _ := ed25519.GenerateKey(rand.Reader) // it never fails
	return keyOf(private)
}

func keyOf(private ed25519.PrivateKey) Key {
	return Key{private, publicOf(private.Public().(ed25519.PublicKey))}
}

func publicOf(key ed25519.PublicKey) Public {
	digest, _ := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256) // of this type it always can
	return Public{string(key), base64.RawURLEncoding.EncodeToString(digest)}
}

// block is the type of a key's PEM block.
const block = "PRIVATE KEY"

// ParseKey reads the file of a key: one PEM block of PKCS #8, and nothing else.
func ParseKey(file []byte) (Key, error) {
	b, rest := pem.Decode(file)
	if b == nil || b.Type != block || len(bytes.TrimSpace(rest)) > 0 {
		return Key{}, errors.New("it is not one PEM block " + block)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return Key{}, errors.New("it does not hold an Ed25519 key")
	}
	return keyOf(private), nil
}

// File is what [ParseKey] reads.
func (k Key) File() []byte {
	raw, _ := x509.MarshalPKCS8PrivateKey(k.private) // of this type it always can
	return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: raw})
}

// Public is what others need to verify what the key signs.
func (k Key) Public() Public { return k.public }

// Format keeps every verb of package fmt from printing the key.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[key "+k.public.id+"]") }

// LogValue keeps package slog from logging the key.
func (k Key) LogValue() slog.Value { return slog.StringValue("[key " + k.public.id + "]") }

// form is what a public key begins with in its text.
const form = "ed25519:"

// ParsePublic reads "ed25519:" and 32 bytes in base64.
func ParsePublic(text string) (Public, error) {
	encoded, ok := strings.CutPrefix(text, form)
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(raw) != ed25519.PublicKeySize {
		return Public{}, errors.New(`it must be "ed25519:" and 32 bytes in base64, as "skep peer key" prints it on the other host`)
	}
	return publicOf(raw), nil
}

// String is what [ParsePublic] reads.
func (p Public) String() string { return form + base64.StdEncoding.EncodeToString([]byte(p.key)) }

// ID names the key in signatures: its thumbprint (RFC 7638).
func (p Public) ID() string { return p.id }
