package a2a_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/gateway/a2a"
)

// TestForgedCards: a partner's card whose signature is of another key or of another card, has no
// algorithm, one of a shared secret made of the public key, or one of another kind of key, is by no
// pinned key.
func TestForgedCards(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *a2a.Options) { o.CardKey = newCardKey(t) })
	_, text := s.get(t, s.http(token), "/a2a/hive/echo/.well-known/agent-card.json")
	_, other := s.get(t, s.http(token), "/a2a/hive/slow/.well-known/agent-card.json")
	_, keys := s.get(t, s.server.Client(), "/a2a/keys.json")
	if err := a2a.VerifyCard([]byte(text), []byte(keys)); err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(keys), &set); err != nil {
		t.Fatal(err)
	}
	public, _ := set.Keys[0].Key.(ed25519.PublicKey)
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := a2a.CanonicalCard([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	signed := func(algorithm jose.SignatureAlgorithm, key any) (protected, signature string) {
		t.Helper()
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", set.Keys[0].KeyID))
		if err != nil {
			t.Fatal(err)
		}
		made, err := signer.Sign(payload)
		if err != nil {
			t.Fatal(err)
		}
		var parts struct{ Protected, Signature string }
		if err := json.Unmarshal([]byte(made.FullSerialize()), &parts); err != nil {
			t.Fatal(err)
		}
		return parts.Protected, parts.Signature
	}
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	own, good := signatureOf(t, text)
	foreign, its := signatureOf(t, other)
	another, anothers := signed(jose.EdDSA, private)
	secret, macs := signed(jose.HS256, []byte(public))
	for name, forged := range map[string][2]string{
		"another key":            {another, anothers},
		"another card":           {foreign, its},
		"a shared secret":        {secret, macs},
		"no algorithm":           {header(`{"alg":"none"}`), ""},
		"none, with a signature": {header(`{"alg":"none"}`), good},
		"another algorithm":      {header(`{"alg":"ES256"}`), good},
		"no header":              {"", good},
		"no signature":           {own, ""},
		"half a signature":       {own, good[:len(good)/2]},
		"an unknown extension":   {header(`{"alg":"EdDSA","crit":["exp"],"exp":1}`), good},
	} {
		if err := a2a.VerifyCard([]byte(withSignature(t, text, forged[0], forged[1])), []byte(keys)); err == nil || !strings.Contains(err.Error(), "no signature of the card") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a2a.VerifyCard([]byte(withSignature(t, text, own, good)), []byte(keys)); err != nil {
		t.Errorf("its own signature: %v", err)
	}
}

// signatureOf is the first signature of a card.
func signatureOf(t *testing.T, card string) (protected, signature string) {
	t.Helper()
	var c struct {
		Signatures []struct{ Protected, Signature string }
	}
	if err := json.Unmarshal([]byte(card), &c); err != nil || len(c.Signatures) == 0 {
		t.Fatalf("%s: %v", card, err)
	}
	return c.Signatures[0].Protected, c.Signatures[0].Signature
}

// withSignature is a card with one signature.
func withSignature(t *testing.T, card, protected, signature string) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(card), &members); err != nil {
		t.Fatal(err)
	}
	members["signatures"] = []any{map[string]any{"protected": protected, "signature": signature}}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
