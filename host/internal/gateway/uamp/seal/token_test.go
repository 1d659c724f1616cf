package seal_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-jose/go-jose/v4"
	"github.com/veraison/go-cose"

	"skep/host/internal/gateway/uamp/seal"
)

const (
	issuer  = "did:web:lab.example"
	tokenID = issuer + "#k"
	calc    = "did:web:hive.example:agents:hive:calc"
)

var now = time.Date(2025, 7, 10, 10, 0, 0, 0, time.UTC)

// issuerKey signs the tokens.
func issuerKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed([]byte(strings.Repeat("i", 32))) }

// use is what the tokens are shown for.
func use() seal.Use {
	return seal.Use{Now: now, Skew: time.Minute, Audience: []string{calc, "did:web:hive.example"}, Issuers: []string{issuer}, Subject: "did:web:lab.example:agents:x", Need: "uamp:ask", Agent: "calc"}
}

// claims are claims that count for it, some of them changed.
func claims(changes map[string]any) map[string]any {
	all := map[string]any{"iss": issuer, "aud": calc, "scope": "uamp:ask", "exp": now.Add(time.Minute).Unix()}
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// jwt signs claims, or another payload.
func jwt(t *testing.T, alg jose.SignatureAlgorithm, key any, payload any, header map[jose.HeaderKey]any) string {
	t.Helper()
	raw, isText := payload.(string)
	if !isText {
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(text)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, &jose.SignerOptions{ExtraHeaders: header})
	if err != nil {
		t.Fatal(err)
	}
	made, err := signer.Sign([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// labels are the claims of a CBOR Web Token.
var labels = map[string]int{"iss": 1, "sub": 2, "aud": 3, "exp": 4, "nbf": 5, "scope": 9}

// cwt signs claims as a CBOR Web Token.
func cwt(t *testing.T, alg cose.Algorithm, key crypto.Signer, all map[string]any, protected cose.ProtectedHeader, tags ...uint64) string {
	t.Helper()
	numbered := map[int]any{}
	for name, value := range all {
		numbered[labels[name]] = value
	}
	payload, err := cbor.Marshal(numbered)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cose.NewSigner(alg, key)
	if err != nil {
		t.Fatal(err)
	}
	header := cose.ProtectedHeader{cose.HeaderLabelAlgorithm: alg, cose.HeaderLabelKeyID: []byte(tokenID)}
	for label, value := range protected {
		header[label] = value
	}
	m := cose.UntaggedSign1Message{Headers: cose.Headers{Protected: header}, Payload: payload}
	if err := m.Sign(rand.Reader, nil, signer); err != nil {
		t.Fatal(err)
	}
	raw, err := m.MarshalCBOR()
	for _, tag := range tags {
		if err == nil {
			raw, err = cbor.Marshal(cbor.RawTag{Number: tag, Content: raw})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// verdict is nil for a token that counts for a use.
func verdict(t *testing.T, text string, u seal.Use) error {
	t.Helper()
	token, err := seal.ReadToken(text)
	if err == nil {
		err = token.Verify([]seal.PublicKey{newKey(t, tokenID, issuerKey()).Public()})
	}
	if err == nil {
		err = token.Check(u)
	}
	return err
}

// TestTokenClaims (V-U19, U-042): tokens of both forms, of which each claim must fit.
func TestTokenClaims(t *testing.T) {
	t.Parallel()
	type change = map[string]any
	for name, c := range map[string]struct {
		change change
		want   error
	}{
		"counts":              {change{}, nil},
		"for the host":        {change{"aud": "did:web:hive.example"}, nil},
		"for several":         {change{"aud": []string{"did:web:other.example", calc}}, nil},
		"a list of scopes":    {change{"scope": []string{"stream:read", "uamp:ask"}}, nil},
		"all intents":         {change{"scope": "stream:read uamp:*"}, nil},
		"this agent":          {change{"scope": "uamp:ask agent:calc"}, nil},
		"this sender":         {change{"sub": "did:web:lab.example:agents:x"}, nil},
		"just expired":        {change{"exp": now.Add(-30 * time.Second).Unix()}, nil},
		"valid since":         {change{"nbf": now.Unix()}, nil},
		"other audience":      {change{"aud": "did:web:other.example"}, seal.ErrToken},
		"no audience":         {change{"aud": nil}, seal.ErrToken},
		"expired":             {change{"exp": now.Add(-2 * time.Minute).Unix()}, seal.ErrToken},
		"no exp":              {change{"exp": nil}, seal.ErrToken},
		"negative exp":        {change{"exp": -1}, seal.ErrToken},
		"exp a text":          {change{"exp": "tomorrow"}, seal.ErrToken},
		"not yet":             {change{"nbf": now.Add(2 * time.Minute).Unix()}, seal.ErrToken},
		"other issuer":        {change{"iss": "did:web:evil.example"}, seal.ErrToken},
		"no issuer":           {change{"iss": nil}, seal.ErrToken},
		"other subject":       {change{"sub": "did:web:evil.example"}, seal.ErrToken},
		"audience of numbers": {change{"aud": []int{1}}, seal.ErrToken},
		"scope a number":      {change{"scope": 1}, seal.ErrToken},
		"other intent":        {change{"scope": "uamp:inform"}, seal.ErrScope},
		"no scope":            {change{"scope": nil}, seal.ErrScope},
		"other agent":         {change{"scope": "uamp:ask agent:other"}, seal.ErrScope},
		"agent alone":         {change{"scope": "agent:calc"}, seal.ErrScope},
	} {
		all := claims(c.change)
		for form, text := range map[string]string{
			"JWT": jwt(t, jose.EdDSA, issuerKey(), all, map[jose.HeaderKey]any{"kid": tokenID}),
			"CWT": cwt(t, cose.AlgorithmEdDSA, issuerKey(), all, nil, 18),
		} {
			if err := verdict(t, text, use()); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v", form, name, err)
			}
		}
	}
	reads := use()
	reads.Need = "stream:read"
	if err := verdict(t, jwt(t, jose.EdDSA, issuerKey(), claims(map[string]any{"scope": "uamp:*"}), nil), reads); !errors.Is(err, seal.ErrScope) {
		t.Errorf("all intents are no right to read: %v", err)
	}
}

// TestTokenReasons (U-042, U-043): what is wrong with a token is said of the token, by its claim.
func TestTokenReasons(t *testing.T) {
	t.Parallel()
	type change = map[string]any
	signed := func(c change) string {
		return jwt(t, jose.EdDSA, issuerKey(), claims(c), map[jose.HeaderKey]any{"kid": tokenID})
	}
	foreign := ed25519.NewKeyFromSeed(make([]byte, 32))
	for text, want := range map[string]string{
		signed(change{"exp": now.Add(-2 * time.Minute).Unix()}): "it expired at 2025-07-10T09:58:00Z",
		signed(change{"exp": nil}):                              "it has no exp",
		signed(change{"exp": "tomorrow"}):                       "its claims cannot be read",
		signed(change{"exp": -1}):                               "its exp has not the type of this claim",
		signed(change{"scope": 1}):                              "its scope has not the type of this claim",
		signed(change{"nbf": now.Add(2 * time.Minute).Unix()}):  "it is not valid before 2025-07-10T10:02:00Z",
		signed(change{"aud": nil}):                              "it has no aud",
		signed(change{"aud": "did:web:other.example"}):          `its aud ["did:web:other.example"] names none of ["did:web:hive.example:agents:hive:calc" "did:web:hive.example"]`,
		signed(change{"iss": nil}):                              "it has no iss",
		signed(change{"iss": "did:web:evil.example"}):           `its iss "did:web:evil.example" is neither the sender nor the recipient or its host`,
		signed(change{"sub": "did:web:evil.example"}):           `its sub is "did:web:evil.example", and the sender another`,
		jwt(t, jose.EdDSA, foreign, claims(nil), nil):           "it was signed with another key than its issuer's, or was changed",
		jwt(t, jose.EdDSA, foreign, claims(nil), map[jose.HeaderKey]any{"kid": "did:web:lab.example#x"}):                 `its key "did:web:lab.example#x" is none of EdDSA of its issuer, "did:web:lab.example"`,
		jwt(t, jose.EdDSA, issuerKey(), claims(nil), map[jose.HeaderKey]any{"crit": []string{"x"}, "x": true}):           "its header has crit, which asks for an extension",
		jwt(t, jose.HS256, []byte(strings.Repeat("k", 32)), claims(nil), nil):                                            "it is not a compact JWS with alg ES256 or EdDSA",
		jwt(t, jose.EdDSA, issuerKey(), claims(nil), map[jose.HeaderKey]any{"kid": tokenID, "typ": "manifest+jws"}):      "it is a manifest",
		cwt(t, cose.AlgorithmEdDSA, issuerKey(), claims(nil), cose.ProtectedHeader{cose.HeaderLabelKeyID: []byte("#x")}): `its key "#x" is none of EdDSA`,
		"eyJ…":                     "it is neither a JSON Web Token nor a CBOR Web Token in base64url",
		"AAAA":                     "it is no COSE_Sign1",
		strings.Repeat("a", 9<<10): "it has more than 8192 bytes",
	} {
		err := verdict(t, text, use())
		if !errors.Is(err, seal.ErrToken) || !strings.HasPrefix(err.Error(), "the capability token does not count: "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTokenForms (V-U07, V-U19, U-043): how a token may be written and signed.
func TestTokenForms(t *testing.T) {
	t.Parallel()
	key, ec, foreign := issuerKey(), p256(t), ed25519.NewKeyFromSeed(make([]byte, 32))
	all := claims(nil)
	kid := map[jose.HeaderKey]any{"kid": tokenID}
	ownEC := newKey(t, tokenID, ec).Public()
	for name, c := range map[string]struct {
		text   string
		counts bool
	}{
		"JWT":               {jwt(t, jose.EdDSA, key, all, kid), true},
		"no key id":         {jwt(t, jose.EdDSA, key, all, nil), true},
		"CWT":               {cwt(t, cose.AlgorithmEdDSA, key, all, nil), true},
		"CWT, tagged":       {cwt(t, cose.AlgorithmEdDSA, key, all, nil, 18), true},
		"CWT, both tags":    {cwt(t, cose.AlgorithmEdDSA, key, all, nil, 18, 61), true},
		"other tag":         {cwt(t, cose.AlgorithmEdDSA, key, all, nil, 98), false},
		"CWT of other key":  {cwt(t, cose.AlgorithmEdDSA, foreign, all, nil, 18), false},
		"CWT of other kid":  {cwt(t, cose.AlgorithmEdDSA, key, all, cose.ProtectedHeader{cose.HeaderLabelKeyID: []byte("did:web:b.example#k")}), false},
		"CWT with crit":     {cwt(t, cose.AlgorithmEdDSA, key, all, cose.ProtectedHeader{cose.HeaderLabelCritical: []any{int64(99)}, int64(99): "x"}), false},
		"CWT of other type": {cwt(t, cose.AlgorithmES256, ec, all, nil), false},
		"JWT of other key":  {jwt(t, jose.EdDSA, foreign, all, kid), false},
		"JWT of other type": {jwt(t, jose.ES256, ec, all, kid), false},
		"HS256 of the key":  {jwt(t, jose.HS256, []byte(key.Public().(ed25519.PublicKey)), all, kid), false},
		"none":              {base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + ".e30.", false},
		"crit":              {jwt(t, jose.EdDSA, key, all, map[jose.HeaderKey]any{"crit": []string{"x"}, "x": 1}), false},
		"a manifest":        {jwt(t, jose.EdDSA, key, all, map[jose.HeaderKey]any{"typ": "manifest+jws"}), false},
		"claims twice":      {jwt(t, jose.EdDSA, key, `{"iss":"did:web:lab.example","iss":"did:web:lab.example"}`, nil), false},
		"no claims":         {jwt(t, jose.EdDSA, key, `7`, nil), false},
		"no token":          {"eyJ…", false},
		"empty":             {"", false},
		"too large":         {strings.Repeat("A", 9<<10), false},
	} {
		if err := verdict(t, c.text, use()); (err == nil) != c.counts || err != nil && !errors.Is(err, seal.ErrToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{jwt(t, jose.ES256, ec, all, kid), cwt(t, cose.AlgorithmES256, ec, all, nil, 18)} {
		token, err := seal.ReadToken(text)
		if err != nil || token.Verify([]seal.PublicKey{ownEC}) != nil {
			t.Errorf("ES256: %v", err)
		}
	}
}

// TestGrant (U-042): a token of ours counts. Its scope is a text with spaces.
func TestGrant(t *testing.T) {
	t.Parallel()
	k := newKey(t, tokenID, issuerKey())
	text, err := k.Grant(seal.Claims{Issuer: issuer, Audience: []string{calc}, Scope: []string{"uamp:ask", "agent:calc"}, Expires: now.Add(5 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if err := verdict(t, text, use()); err != nil {
		t.Error(err)
	}
	token, err := seal.ReadToken(text)
	if err != nil || token.Issuer != issuer || !slices.Equal(token.Scope, []string{"uamp:ask", "agent:calc"}) || !token.Expires.Equal(now.Add(5*time.Minute)) {
		t.Errorf("%+v, %v", token.Claims, err)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	if err != nil || !strings.Contains(string(payload), `"scope":"uamp:ask agent:calc"`) {
		t.Errorf("%s, %v", payload, err)
	}
}

// TestSignedDocument (V-U14, U-100, U-101): a signed manifest counts for its issuer until
// it expires, and only as one.
func TestSignedDocument(t *testing.T) {
	t.Parallel()
	key := issuerKey()
	own := newKey(t, tokenID, key)
	keys := []seal.PublicKey{own.Public()}
	const payload = `{"agent":"uamp/1.0"}`
	text, err := own.SignDocument([]byte(payload), issuer, now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := seal.ReadDocument(text, issuer, keys, now); err != nil || string(got) != payload {
		t.Errorf("%s, %v", got, err)
	}
	header := func(changes map[jose.HeaderKey]any) map[jose.HeaderKey]any {
		all := map[jose.HeaderKey]any{"kid": tokenID, "typ": "manifest+jws", "iss": issuer, "exp": now.Add(time.Hour).Unix()}
		for name, value := range changes {
			all[name] = value
		}
		return all
	}
	if _, err := seal.ReadDocument(jwt(t, jose.EdDSA, key, payload, header(nil)), issuer, keys, now); err != nil {
		t.Error(err)
	}
	if _, err := seal.ReadDocument(jwt(t, jose.EdDSA, key, payload, map[jose.HeaderKey]any{"kid": tokenID, "typ": "manifest+jws"}), issuer, keys, now); err != nil {
		t.Errorf("the issuer in kid alone: %v", err)
	}
	foreign := ed25519.NewKeyFromSeed(make([]byte, 32))
	for name, text := range map[string]string{
		"no issuer":      jwt(t, jose.EdDSA, key, payload, map[jose.HeaderKey]any{"typ": "manifest+jws"}),
		"kid of another": jwt(t, jose.EdDSA, key, payload, map[jose.HeaderKey]any{"kid": "did:web:evil.example#k", "typ": "manifest+jws"}),
		"key of another": jwt(t, jose.EdDSA, foreign, payload, map[jose.HeaderKey]any{"kid": tokenID, "typ": "manifest+jws"}),
		"issuer no text": jwt(t, jose.EdDSA, key, payload, header(map[jose.HeaderKey]any{"iss": 1})),
		"other typ":      jwt(t, jose.EdDSA, key, payload, header(map[jose.HeaderKey]any{"typ": "JWT"})),
		"other issuer":   jwt(t, jose.EdDSA, key, payload, header(map[jose.HeaderKey]any{"iss": "did:web:evil.example"})),
		"expired":        jwt(t, jose.EdDSA, key, payload, header(map[jose.HeaderKey]any{"exp": now.Unix()})),
		"exp a text":     jwt(t, jose.EdDSA, key, payload, header(map[jose.HeaderKey]any{"exp": "never"})),
		"other key":      jwt(t, jose.EdDSA, foreign, payload, header(nil)),
		"other kid":      jwt(t, jose.EdDSA, key, payload, header(map[jose.HeaderKey]any{"kid": "did:web:evil.example#k"})),
		"a token":        jwt(t, jose.EdDSA, key, claims(nil), map[jose.HeaderKey]any{"kid": tokenID}),
		"unsigned":       payload,
		"changed":        strings.Replace(text, ".", ".e30", 1),
	} {
		if got, err := seal.ReadDocument(text, issuer, keys, now); !errors.Is(err, seal.ErrSignature) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// FuzzReadToken looks for a token that counts without a signature of its issuer.
func FuzzReadToken(f *testing.F) {
	f.Add("eyJhbGciOiJFZERTQSJ9.e30.AAAA")
	f.Add("0oRDoQEmoQRCMTGg9g")
	k, err := seal.NewKey(tokenID, issuerKey())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := seal.ReadToken(text)
		if err == nil && token.Verify([]seal.PublicKey{k.Public()}) == nil {
			t.Fatalf("%q counts", text)
		}
	})
}

// TestTokenChain (U-042): a token that holds another one, as the link of a chain, counts by its own
// claims alone: the other's scope, end and subject neither widen nor mend it.
func TestTokenChain(t *testing.T) {
	t.Parallel()
	parent := jwt(t, jose.EdDSA, issuerKey(), claims(map[string]any{"scope": "uamp:*", "exp": now.Add(time.Hour).Unix()}), nil)
	for name, c := range map[string]struct {
		changes map[string]any
		want    error // nil for one that counts
	}{
		"as its parent":         {map[string]any{}, nil},
		"a narrower scope":      {map[string]any{"scope": "uamp:inform"}, seal.ErrScope},
		"an end that is over":   {map[string]any{"exp": now.Add(-time.Hour).Unix()}, seal.ErrToken},
		"no end of its own":     {map[string]any{"exp": nil}, seal.ErrToken},
		"no audience":           {map[string]any{"aud": nil}, seal.ErrToken},
		"another subject":       {map[string]any{"sub": "did:web:lab.example:agents:y"}, seal.ErrToken},
		"another issuer":        {map[string]any{"iss": "did:web:lab.example:agents:y"}, seal.ErrToken},
		"a scope of the parent": {map[string]any{"scope": nil}, seal.ErrScope},
	} {
		for _, claim := range []string{"prf", "act", "parent"} {
			c.changes[claim] = []string{parent}
			err := verdict(t, jwt(t, jose.EdDSA, issuerKey(), claims(c.changes), nil), use())
			if (c.want == nil) != (err == nil) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s, its parent in %s: %v, want %v", name, claim, err, c.want)
			}
			delete(c.changes, claim)
		}
	}
}
