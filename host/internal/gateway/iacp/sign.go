package iacp

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/wire"
)

// unsigned are the members of the metadata that no signature covers: they change on the way,
// or are shown to one host.
var unsigned = []string{"signature", "auth", "hops", "traceparent", "tracestate"}

// checkSignature refuses a message of a partner with keys that is not signed with one of them
// (I-074).
func (g *Gateway) checkSignature(c gateway.Caller, m message.Message, text []byte) error {
	p, _ := g.Runtime.Partner(c.Realm)
	keys, _ := p.Options["keys"].([]string)
	if len(keys) == 0 {
		return nil
	}
	s := m.Meta().Signature
	if s == nil {
		return refusedf(codeDenied, "the message is not signed: metadata.signature is missing")
	}
	payload, err := signedPart(text, g.MaxDepth)
	if err != nil {
		return err
	}
	value, err := base64.RawURLEncoding.DecodeString(s.Value)
	if err != nil || !slices.ContainsFunc(keys, func(key string) bool { return verifies(key, *s, payload, value) }) {
		return refusedf(codeDenied, "the signature is of none of the keys of the partner")
	}
	return nil
}

// encode writes a message to a peer, signed where the partner's table has a key. What is about the
// connection itself is not signed.
func (g *Gateway) encode(to gateway.Caller, m message.Message) ([]byte, error) {
	p, _ := g.Runtime.Partner(to.Realm)
	if len(p.SigningKey) == 0 || m.Type.Class() == message.Control {
		return m.Encode()
	}
	meta := m.Meta()
	m.Metadata = &meta
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	payload, err := signedPart(text, g.MaxDepth)
	if err != nil {
		return nil, err
	}
	if meta.Signature, err = signatureOf(p.SigningKey, payload); err != nil {
		return nil, err
	}
	return m.Encode()
}

// signatureOf signs with a private JSON Web Key.
func signatureOf(key, payload []byte) (*message.Signature, error) {
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(key); err != nil {
		return nil, err
	}
	s := &message.Signature{KeyID: jwk.KeyID}
	var value []byte
	switch private := jwk.Key.(type) {
	case ed25519.PrivateKey:
		s.Algorithm, value = string(jose.EdDSA), ed25519.Sign(private, payload)
	case *ecdsa.PrivateKey:
		sum := sha256.Sum256(payload)
		r, second, err := ecdsa.Sign(rand.Reader, private, sum[:])
		if err != nil {
			return nil, err
		}
		s.Algorithm, value = string(jose.ES256), append(r.FillBytes(make([]byte, 32)), second.FillBytes(make([]byte, 32))...)
	default:
		return nil, errors.New("the partner's sign is no private key of Ed25519 or P-256")
	}
	s.Value = base64.RawURLEncoding.EncodeToString(value)
	return s, nil
}

// signedPart is what a signature covers: the canonical form of the message
// (https://www.rfc-editor.org/rfc/rfc8785) without what changes on the way.
func signedPart(text []byte, depth int) ([]byte, error) {
	var members, metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(members["metadata"], &metadata); err != nil {
		return nil, err
	}
	for _, name := range unsigned {
		delete(metadata, name)
	}
	delete(members, "metadata")
	if len(metadata) > 0 {
		rest, err := wire.Encode(metadata)
		if err != nil {
			return nil, err
		}
		members["metadata"] = rest
	}
	whole, err := wire.Encode(members)
	if err != nil {
		return nil, err
	}
	return wire.Canonical(whole, wire.RFC8785, depth+1)
}

// verifies reports whether a signature is of a key.
func verifies(key string, s message.Signature, payload, value []byte) bool {
	var jwk jose.JSONWebKey
	if jwk.UnmarshalJSON([]byte(key)) != nil || s.KeyID != "" && jwk.KeyID != "" && s.KeyID != jwk.KeyID {
		return false
	}
	switch public := jwk.Key.(type) {
	case ed25519.PublicKey:
		return s.Algorithm == string(jose.EdDSA) && ed25519.Verify(public, payload, value)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(payload)
		half := len(value) / 2
		return s.Algorithm == string(jose.ES256) && public.Curve == elliptic.P256() && len(value) == 64 &&
			ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(value[:half]), new(big.Int).SetBytes(value[half:]))
	}
	return false
}
