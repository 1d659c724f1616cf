package seal_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/gateway/uamp/seal"
)

// TestMultikey (U-030, U-032): the examples of did:key
// (https://w3c-ccg.github.io/did-key-spec/), and the way there and back.
func TestMultikey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
		"zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169",
	} {
		k, err := seal.ParseMultikey("x", text)
		if err != nil || k.Multikey() != text || k.ID != "x" {
			t.Errorf("%s: %s, %v", text, k.Multikey(), err)
			continue
		}
		again, err := seal.ParseJWK("y", k.JWK())
		if err != nil || !again.Equal(k) || again.Multikey() != text || again.Thumbprint() != k.Thumbprint() {
			t.Errorf("%s: %v", text, err)
		}
	}
	own := newKey(t, "did:web:a.example#k", p256(t))
	if k, err := seal.ParseMultikey("", own.Public().Multikey()); err != nil || !k.Equal(own.Public()) {
		t.Error(err)
	}
	for _, text := range []string{
		"", "z", "m6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2do0",
		"z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2do", "z1" + strings.Repeat("2", 40), "z" + strings.Repeat("z", 1000),
		"z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc", // X25519
	} {
		if _, err := seal.ParseMultikey("", text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestMultikeyIsAPoint (U-030): of the numbers beside a key of P-256 half are no points of
// the curve, and no keys.
func TestMultikeyIsAPoint(t *testing.T) {
	t.Parallel()
	points := 0
	for _, last := range "123456789ABCDEFGHJKLMNPQRSTUVWXYZ" {
		if _, err := seal.ParseMultikey("", "zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU216"+string(last)); err == nil {
			points++
		}
	}
	if points == 0 || points > 30 {
		t.Errorf("%d of 33 are taken", points)
	}
}

// TestParseJWK (U-030): public keys of two types for signatures, and no others.
func TestParseJWK(t *testing.T) {
	t.Parallel()
	ed := ed25519.NewKeyFromSeed(make([]byte, 32))
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key jose.JSONWebKey
		ok  bool
	}{
		"public":    {jose.JSONWebKey{Key: ed.Public(), Use: "sig", Algorithm: "EdDSA", KeyID: "k"}, true},
		"private":   {jose.JSONWebKey{Key: ed}, false},
		"other use": {jose.JSONWebKey{Key: ed.Public(), Use: "enc"}, false},
		"other alg": {jose.JSONWebKey{Key: ed.Public(), Algorithm: "ES256"}, false},
		"P-384":     {jose.JSONWebKey{Key: p384.Public()}, false},
		"symmetric": {jose.JSONWebKey{Key: []byte("0123456789abcdef")}, false},
	} {
		text, err := c.key.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seal.ParseJWK("id", text); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := seal.ParseJWK("id", []byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")); err == nil || !strings.Contains(err.Error(), "a PUBLIC KEY in PEM: write it as JSON") {
		t.Errorf("PEM: %v", err)
	}
	if _, err := seal.ParseJWK("id", []byte("{}")); err == nil {
		t.Error("an empty key is taken")
	}
}

// TestKeyIsNotPrinted (G-056): no verb prints a private key.
func TestKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	k := vectorKey(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if text := fmt.Sprintf(verb, k); text != "[key "+vectorID+"]" {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

// TestLowOrder (U-022, U-027): the fourteen spellings of Ed25519's points of low order, under which
// anybody can sign, are no keys in either form.
func TestLowOrder(t *testing.T) {
	t.Parallel()
	y8 := "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a" // of order 8
	other := "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
	zeros, ones := strings.Repeat("00", 30), strings.Repeat("ff", 30)
	for _, text := range []string{
		"01" + zeros + "00", "01" + zeros + "80", "ec" + ones + "7f", "ec" + ones + "ff", // orders 1 and 2
		"00" + zeros + "00", "00" + zeros + "80", y8, y8[:62] + "fa", other, other[:62] + "85", // orders 4 and 8
		"ed" + ones + "7f", "ed" + ones + "ff", "ee" + ones + "7f", "ee" + ones + "ff", // above the prime
	} {
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		jwk := `{"kty":"OKP","crv":"Ed25519","x":"` + base64.RawURLEncoding.EncodeToString(raw) + `"}`
		if _, err := seal.ParseJWK("k", []byte(jwk)); err == nil || !strings.Contains(err.Error(), "low-order point") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := seal.ParseMultikey("k", seal.EncodeMultikey(raw)); err == nil || !strings.Contains(err.Error(), "low-order point") {
			t.Errorf("%s in multibase: %v", text, err)
		}
	}
	for seed := range byte(20) {
		if _, err := seal.NewKey("k", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))); err != nil {
			t.Errorf("the key of seed %d: %v", seed, err)
		}
	}
}
