package signature_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/peer/signature"
)

var now = time.Unix(1_700_000_000, 0)

const plain = `{"message_id":"m1","source_swarm":"hive","target_swarm":"depot","payload":{"body":"<a> & \u00e4 € 𝄞","n":[1.50,2e3,-0]},` +
	`"auth_token":"","metadata":{"kept":1},"task_contributors":["user:alice@hive"]}`

// signed is a wrapper with the signature of a key.
func signed(t testing.TB, k signature.Key, wrapper string, way signature.Route, at time.Time) string {
	t.Helper()
	signature, err := k.Sign([]byte(wrapper), way, at)
	if err != nil {
		t.Fatal(err)
	}
	return with(t, wrapper, signature)
}

// with puts a signature into a wrapper's metadata.
func with(t testing.TB, wrapper string, value any) string {
	t.Helper()
	var w map[string]any
	if err := json.Unmarshal([]byte(wrapper), &w); err != nil {
		t.Fatal(err)
	}
	meta, _ := w["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[signature.Member] = value
	w["metadata"] = meta
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A signature holds for the wrapper however it is spelled, with or without a
// token, for ten minutes around when it was made.
func TestVerify(t *testing.T) {
	t.Parallel()
	k, way := signature.NewKey(), signature.Route{Target: "depot"}
	text := signed(t, k, plain, way, now)
	for _, as := range []string{
		text,
		strings.Replace(text, `"auth_token":""`, `"auth_token":"the token"`, 1),
		strings.Replace(text, `"auth_token":"",`, ``, 1),
		strings.ReplaceAll(strings.Replace(text, `,"`, ` , "`, -1), "\u00e4", `\u00E4`),
	} {
		for _, at := range []time.Time{now, now.Add(signature.Window), now.Add(-signature.Window)} {
			if err := k.PublicKey().Verify([]byte(as), way, at); err != nil {
				t.Errorf("%s: %v", as, err)
			}
		}
	}
	for _, bare := range []string{`{"a":1}`, `{"a":1,"metadata":null}`} {
		if err := k.PublicKey().Verify([]byte(signed(t, k, bare, way, now)), way, now); err != nil {
			t.Errorf("%s: %v", bare, err)
		}
	}
}

// Whatever is not what the key's holder has just sent this way is refused.
func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	k, other, way := signature.NewKey(), signature.NewKey(), signature.Route{Target: "depot"}
	text := signed(t, k, plain, way, now)
	good, err := k.Sign([]byte(plain), way, now)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	claims := func(alg, kid string, iat any) string {
		raw, _ := json.Marshal(map[string]any{"alg": alg, "kid": kid, "iat": iat})
		return base64.RawURLEncoding.EncodeToString(raw) + ".." + parts[2]
	}
	for name, c := range map[string]struct {
		text string
		way  signature.Route
		at   time.Time
		want string
	}{
		"unsigned":            {plain, way, now, "it is not signed"},
		"another key":         {signed(t, other, plain, way, now), way, now, "another key than " + k.PublicKey().String()},
		"a borrowed id":       {with(t, plain, forged(t, other, k, now)), way, now, "does not match"},
		"another swarm":       {text, signature.Route{Target: "yard"}, now, "does not match"},
		"the other route":     {text, signature.Route{Back: true, Target: "depot"}, now, "does not match"},
		"a changed byte":      {strings.Replace(text, `"message_id":"m1"`, `"message_id":"m2"`, 1), way, now, "does not match"},
		"a member more":       {strings.Replace(text, `{`, `{"new":1,`, 1), way, now, "does not match"},
		"metadata more":       {strings.Replace(text, `"kept":1`, `"kept":1,"new":2`, 1), way, now, "does not match"},
		"too old":             {text, way, now.Add(signature.Window + time.Second), "look at both clocks"},
		"from the future":     {text, way, now.Add(-signature.Window - time.Second), "look at both clocks"},
		"no algorithm":        {with(t, plain, claims("none", k.PublicKey().ID(), now.Unix())), way, now, "alg EdDSA"},
		"a shared secret":     {with(t, plain, claims("HS256", k.PublicKey().ID(), now.Unix())), way, now, "alg EdDSA"},
		"another time":        {with(t, plain, claims("EdDSA", k.PublicKey().ID(), now.Unix()+1)), way, now, "does not match"},
		"no time":             {with(t, plain, timeless(t, k, nil)), way, now, "(iat)"},
		"a text for a time":   {with(t, plain, timeless(t, k, "noon")), way, now, "(iat)"},
		"a time without end":  {with(t, plain, timeless(t, k, 1e300)), way, now, "(iat)"},
		"not detached":        {with(t, plain, parts[0]+"."+base64.RawURLEncoding.EncodeToString([]byte("{}"))+"."+parts[2]), way, now, "detached"},
		"no signature":        {with(t, plain, parts[0]+".."), way, now, ""},
		"no JWS":              {with(t, plain, "x"), way, now, "detached"},
		"a JSON JWS":          {with(t, plain, `{"payload":"","signature":""}`), way, now, "detached"},
		"a number":            {with(t, plain, 5), way, now, "is no string"},
		"long":                {with(t, plain, strings.Repeat("a", 2000)), way, now, "at most 1024"},
		"two of a name":       {strings.Replace(text, `{`, `{"message_id":"m2",`, 1), way, now, "can be signed"},
		"two of metadata":     {strings.Replace(text, `"kept":1`, `"kept":1,"kept":2`, 1), way, now, "can be signed"},
		"no object":           {`[]`, way, now, "no object"},
		"null":                {`null`, way, now, "no object"},
		"metadata is a list":  {`{"metadata":[]}`, way, now, "metadata is no object"},
		"no JSON":             {`{"metadata":`, way, now, "can be signed"},
		"half of a character": {`{"a":"\ud800"}`, way, now, "can be signed"},
	} {
		err := k.PublicKey().Verify([]byte(c.text), c.way, c.at)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, signature.ErrUnsigned) != (name == "unsigned") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := (signature.PublicKey{}).Verify([]byte(text), way, now); err == nil {
		t.Error("no key verifies something")
	}
	if _, err := k.Sign([]byte("[]"), way, now); err == nil {
		t.Error("a list is signed")
	}
}

// jws signs the text of plain for depot with headers of the test's choice.
func jws(t *testing.T, k signature.Key, opt *jose.SignerOptions) string {
	t.Helper()
	text := `{"direction":"forward","target":"depot","wrapper":{"message_id":"m1","metadata":{"kept":1},` +
		`"payload":{"body":"<a> & ä € 𝄞","n":[1.5,2000,0]},"source_swarm":"hive","target_swarm":"depot","task_contributors":["user:alice@hive"]}}`
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: private(t, k)}, opt)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := signature.DetachedCompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// private is the key as its file holds it: the last 32 bytes are the seed.
func private(t *testing.T, k signature.Key) ed25519.PrivateKey {
	t.Helper()
	text := strings.Join(strings.Fields(string(k.PEM()))[3:4], "")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(raw[len(raw)-ed25519.SeedSize:])
}

// forged is a signature of one key that bears the id of another.
func forged(t *testing.T, k, as signature.Key, at time.Time) string {
	return jws(t, k, (&jose.SignerOptions{}).WithHeader("iat", at.Unix()).WithHeader("kid", as.PublicKey().ID()))
}

// timeless is a signature with another iat, or none.
func timeless(t *testing.T, k signature.Key, iat any) string {
	opt := (&jose.SignerOptions{}).WithHeader("kid", k.PublicKey().ID())
	if iat != nil {
		opt = opt.WithHeader("iat", iat)
	}
	return jws(t, k, opt)
}

// What is signed is what the package says, so that others can write it too.
func TestForm(t *testing.T) {
	t.Parallel()
	k := signature.NewKey()
	signed := jws(t, k, (&jose.SignerOptions{}).WithHeader("iat", now.Unix()).WithHeader("kid", k.PublicKey().ID()))
	if err := k.PublicKey().Verify([]byte(with(t, plain, signed)), signature.Route{Target: "depot"}, now); err != nil {
		t.Error(err)
	}
}

// Keys survive their files and texts, and are printed by name only.
func TestKey(t *testing.T) {
	t.Parallel()
	k := signature.NewKey()
	same, err := signature.ParseKey(k.PEM())
	if err != nil || same.PublicKey() != k.PublicKey() {
		t.Errorf("%v: %v", same, err)
	}
	public, err := signature.ParsePublic(k.PublicKey().String())
	if err != nil || public != k.PublicKey() {
		t.Errorf("%v: %v", public, err)
	}
	if got, want := fmt.Sprintf("%v %+v %s", k, &k, k.LogValue()), "[key "+k.PublicKey().ID()+"]"; strings.Count(got, want) != 3 {
		t.Errorf("printed as %s", got)
	}
	for _, file := range []string{"", "key", string(k.PEM()) + "x", strings.Replace(string(k.PEM()), "PRIVATE", "PUBLIC", 2), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if _, err := signature.ParseKey([]byte(file)); err == nil {
			t.Errorf("%q is a key", file)
		}
	}
	for _, text := range []string{"", "ed25519:", k.PublicKey().String()[8:], "ed25519:AAAA", "ed25519:" + strings.Repeat("?", 44), k.PublicKey().String() + "=", "rsa:" + k.PublicKey().String()[8:]} {
		if _, err := signature.ParsePublic(text); err == nil {
			t.Errorf("%q is a public key", text)
		}
	}
}

// The cost of a signature for a message of 4 KiB, and for the largest one.
func BenchmarkEnvelope(b *testing.B) {
	k, way := signature.NewKey(), signature.Route{Target: "depot"}
	for _, size := range []int{4 << 10, 1 << 20} {
		wrapper := strings.Replace(plain, "€", strings.Repeat("x", size), 1)
		text := []byte(signed(b, k, wrapper, way, now))
		b.Run(fmt.Sprintf("sign/%d", size), func(b *testing.B) {
			for b.Loop() {
				if _, err := k.Sign([]byte(wrapper), way, now); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("verify/%d", size), func(b *testing.B) {
			for b.Loop() {
				if err := k.PublicKey().Verify(text, way, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
