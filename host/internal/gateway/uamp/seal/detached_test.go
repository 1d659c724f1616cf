package seal_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

var reader = envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}

// The fixed vector: an envelope in canonical form, its hash and its signature, made with
// npm's jose and canonicalize and the key of RFC 8037, appendix A.1.
const (
	vectorBody = `{"body":{"content":"2+2","type":"text/plain"},"from":"did:web:client.example","id":"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6b","intent":"ask","to":["did:web:calc.example"],"ts":"2025-07-10T10:00:00Z"}`
	vectorSum  = "398a0ad95d40d13e10715a0764d754474992347247cf8f773abdd0eb72bd9975"
	vectorSig  = "eyJhbGciOiJFZERTQSIsImtpZCI6ImRpZDp3ZWI6Y2xpZW50LmV4YW1wbGUjazEifQ..BeGLZYHM2X4iKKjSbJ2ej3spsQr1RujDS3TH0AVwTCeuaD2zTQ5LOxUUN5JIEsI1S77nUi9dh1Zp0w2WIlGXBw"
	vectorID   = "did:web:client.example#k1"
)

// vectorKey is the key of the vector.
func vectorKey(t *testing.T) seal.Key {
	t.Helper()
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	return newKey(t, vectorID, ed25519.NewKeyFromSeed(seed))
}

func newKey(t *testing.T, id string, private crypto.Signer) seal.Key {
	t.Helper()
	k, err := seal.NewKey(id, private)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func p256(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// withSig adds a signature to an envelope.
func withSig(text, sig string) []byte {
	return []byte(strings.TrimSuffix(text, "}") + `,"sig":"` + sig + `"}`)
}

func read(t *testing.T, text []byte) envelope.Signed {
	t.Helper()
	s, err := reader.Read(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// TestVector (V-U01, U-020, U-021, U-022, U-024): what other libraries have signed is
// verified, and signed the same here.
func TestVector(t *testing.T) {
	t.Parallel()
	s, k := read(t, withSig(vectorBody, vectorSig)), vectorKey(t)
	used, err := seal.Verify(s.Sig, s.Sums, []seal.PublicKey{k.Public()})
	if err != nil || used.ID != vectorID {
		t.Errorf("%v, %v", used, err)
	}
	sum, err := s.Sum()
	if err != nil || hex.EncodeToString(sum[:]) != vectorSum {
		t.Errorf("%x, %v", sum, err)
	}
	if sig, err := k.Sign(sum); err != nil || sig != vectorSig {
		t.Errorf("%s, %v", sig, err)
	}
}

// jws signs a payload as the caller wants it, with an algorithm and members of the header.
func jws(t *testing.T, alg jose.SignatureAlgorithm, key any, payload string, header map[jose.HeaderKey]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, &jose.SignerOptions{ExtraHeaders: header})
	if err != nil {
		t.Fatal(err)
	}
	made, err := signer.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.DetachedCompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestLaxSignature (V-U07, U-022): a signature counts as an encoder writes it, without line breaks
// and with the bits behind its last byte unset.
func TestLaxSignature(t *testing.T) {
	t.Parallel()
	public := vectorKey(t).Public()
	head, rest, _ := strings.Cut(vectorSig, "..")
	last := rest[:len(rest)-1] + "x" // w and x differ in such a bit alone
	for sig, counts := range map[string]bool{
		vectorSig: true, vectorSig + "\n": false, head + "\r\n.." + rest: false, head + ".." + last: false, head + ".." + rest + "==": false,
	} {
		_, err := seal.Verify(sig, read(t, withSig(vectorBody, "x..y")).Sums, []seal.PublicKey{public})
		if (err == nil) != counts || err != nil && !errors.Is(err, seal.ErrSignature) {
			t.Errorf("%q: %v", sig, err)
		}
	}
}

// TestSpellings (V-U02, V-U04, U-025): both canonical forms and the spellings of the
// payload count, and no other.
func TestSpellings(t *testing.T) {
	t.Parallel()
	private := ed25519.NewKeyFromSeed(make([]byte, 32))
	public := newKey(t, "did:web:a.example#k", private).Public()
	text := strings.TrimSuffix(vectorBody, "}") + ",\"ext\":{\"\uff01\":1.0,\"\U0001f600\":1e21}}"
	jcs := strings.TrimSuffix(vectorBody[len(`{"body":{"content":"2+2","type":"text/plain"},`):], "}")
	rfc8785 := `{"body":{"content":"2+2","type":"text/plain"},"ext":{` + "\"\U0001f600\":1e+21,\"\uff01\":1}," + jcs + "}"
	asSent := `{"body":{"content":"2+2","type":"text/plain"},"ext":{` + "\"\uff01\":1.0,\"\U0001f600\":1e21}," + jcs + "}"
	utf16AsSent := `{"body":{"content":"2+2","type":"text/plain"},"ext":{` + "\"\U0001f600\":1e21,\"\uff01\":1.0}," + jcs + "}"
	for _, c := range []struct {
		canonical, before, after string
		counts                   bool
	}{
		{rfc8785, `{"sha256":"`, `"}`, true},
		{rfc8785, `{"sha256": "`, `"}`, true},
		{asSent, `{"sha256":"`, `"}`, true},
		{asSent, `{"sha256": "`, `"}`, true},
		{utf16AsSent, `{"sha256":"`, `"}`, false},
		{rfc8785, `{ "sha256": "`, `" }`, true},
		{asSent, `{ "sha256": "`, `" }`, true},
		{rfc8785, `{ "sha256":"`, `" }`, false},
		{rfc8785, `{"sha256":"sha256:`, `"}`, false},
		{text, `{"sha256":"`, `"}`, false},
		{`{"body":{},` + jcs + "}", `{"sha256":"`, `"}`, false}, // a body that is not covered (V-U06, U-026)
	} {
		sum := sha256.Sum256([]byte(c.canonical))
		sig := jws(t, jose.EdDSA, private, c.before+hex.EncodeToString(sum[:])+c.after, nil)
		s := read(t, withSig(text, sig))
		if _, err := seal.Verify(s.Sig, s.Sums, []seal.PublicKey{public}); (err == nil) != c.counts {
			t.Errorf("%s%s over %s: %v", c.before, c.after, c.canonical, err)
		}
	}
}

// TestEveryByteCounts (V-U05): an envelope of which one byte was changed does not verify.
func TestEveryByteCounts(t *testing.T) {
	t.Parallel()
	keys := []seal.PublicKey{vectorKey(t).Public()}
	for i := range len(vectorBody) {
		changed := []byte(vectorBody)
		changed[i] ^= 1
		s, err := reader.Read(withSig(string(changed), vectorSig))
		if err != nil {
			continue // it is no envelope any more
		}
		if _, err := seal.Verify(s.Sig, s.Sums, keys); !errors.Is(err, seal.ErrSignature) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	for i := range len(vectorSig) {
		changed := []byte(vectorSig)
		changed[i] ^= 1
		s := read(t, withSig(vectorBody, strings.ReplaceAll(strings.ReplaceAll(string(changed), `"`, "!"), `\`, "!")))
		if _, err := seal.Verify(s.Sig, s.Sums, keys); !errors.Is(err, seal.ErrSignature) {
			t.Errorf("byte %d of the signature: %v", i, err)
		}
	}
}

// TestRefusedSignatures (V-U07, V-U08, V-U09, U-022, U-027): of other algorithms, keys,
// forms and extensions none counts.
func TestRefusedSignatures(t *testing.T) {
	t.Parallel()
	ed, ec := ed25519.NewKeyFromSeed(make([]byte, 32)), p256(t)
	k, other := newKey(t, "did:web:a.example#ed", ed), newKey(t, "did:web:a.example#ec", ec)
	keys := []seal.PublicKey{k.Public(), other.Public()}
	raw, err := hex.DecodeString(vectorSum)
	if err != nil {
		t.Fatal(err)
	}
	sum := [32]byte(raw)
	payload := `{"sha256":"` + vectorSum + `"}`
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	kid := func(id string) map[jose.HeaderKey]any { return map[jose.HeaderKey]any{"kid": id} }
	header := func(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
	good := jws(t, jose.EdDSA, ed, payload, kid("did:web:a.example#ed"))
	foreign := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", 32)))
	for name, c := range map[string]struct {
		sig    string
		counts bool
	}{
		"EdDSA":              {good, true},
		"ES256":              {jws(t, jose.ES256, ec, payload, kid("did:web:a.example#ec")), true},
		"no key id":          {jws(t, jose.ES256, ec, payload, nil), true},
		"another kid":        {jws(t, jose.EdDSA, ed, payload, kid("did:web:b.example#ed")), false},
		"a rotated key":      {jws(t, jose.EdDSA, foreign, payload, kid("did:web:a.example#ed")), false},
		"kid of other type":  {jws(t, jose.ES256, ec, payload, kid("did:web:a.example#ed")), false},
		"embedded key":       {jws(t, jose.EdDSA, foreign, payload, map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: foreign.Public()}}), false},
		"RS256":              {jws(t, jose.RS256, rsaKey, payload, nil), false},
		"HS256 of the key":   {jws(t, jose.HS256, []byte(ed.Public().(ed25519.PublicKey)), payload, kid("did:web:a.example#ed")), false},
		"none":               {header(`{"alg":"none"}`) + "..", false},
		"unknown crit":       {jws(t, jose.EdDSA, ed, payload, map[jose.HeaderKey]any{"crit": []string{"exp"}, "exp": 1}), false},
		"crit without value": {header(`{"alg":"EdDSA","crit":["b64"],"b64":false}`) + ".." + strings.Split(good, ".")[2], false},
		"attached":           {strings.Replace(good, "..", "."+header(payload)+".", 1), false},
		"no JWS":             {"mG0Y…", false},
		"empty":              {"", false},
		"dots":               {"..", false},
	} {
		_, err := seal.Verify(c.sig, slices.Values([][32]byte{sum}), keys)
		if (err == nil) != c.counts || err != nil && !errors.Is(err, seal.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h, err := seal.ReadHeader(good)
	if err != nil || h.KeyID != "did:web:a.example#ed" {
		t.Errorf("%v, %v", h, err)
	}
}

// TestRoundTrip (U-023, U-024): an envelope of ours verifies as it was sent, however it was
// decoded on the way.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, k := range []seal.Key{vectorKey(t), newKey(t, "did:web:client.example#ec", p256(t))} {
		e := envelope.Envelope{
			ID: envelope.NewID(), Time: time.Now(), From: "did:web:client.example", To: []string{"did:web:calc.example"}, Intent: envelope.Confirm, ReplyTo: envelope.NewID(),
			Context: []envelope.Reference{{ID: envelope.NewID(), Hash: "sha256:" + vectorSum}}, Stream: "str-1", Window: 7,
			Body: envelope.NewBody("text/html", []byte("<b>ä & \u2028 😀</b>\x00")), Ext: map[string]json.RawMessage{"x-hops": json.RawMessage("1")},
		}
		sum, err := e.Sum()
		if err != nil {
			t.Fatal(err)
		}
		if e.Sig, err = k.Sign(sum); err != nil {
			t.Fatal(err)
		}
		text, err := e.Text()
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{text, again} {
			s := read(t, text)
			if _, err := seal.Verify(s.Sig, s.Sums, []seal.PublicKey{k.Public()}); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
