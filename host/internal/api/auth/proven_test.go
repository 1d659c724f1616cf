package auth_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"skep/host/internal/api/auth"
)

// A chain knows by their digests the keys and the issued tokens that hold, whose they are,
// and no others.
func TestHolder(t *testing.T) {
	t.Parallel()
	alice := auth.Principal{Tenant: "a", Role: auth.User, ID: "alice"}
	keys, err := auth.NewKeys([]auth.Key{auth.NewKey(alice, "key-of-alice")})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	tokens, err := auth.OpenTokens(t.Context(), newLedger(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	known := auth.OperatorGuard{Authenticator: auth.Chain{keys, tokens}}
	issued := func(life time.Duration) (auth.Digest, string) {
		text, i, err := tokens.Issue(t.Context(), alice, life, "", "")
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256([]byte(text)), i.ID
	}
	lasting, id := issued(0)
	short, _ := issued(time.Minute)
	want := func(what string, d auth.Digest, accepted bool) {
		t.Helper()
		if p, ok := known.Holder(d); ok != accepted || ok && p != alice {
			t.Errorf("%s: accepted %v, %v", what, ok, p)
		}
	}
	want("a key", sha256.Sum256([]byte("key-of-alice")), true)
	want("another key", sha256.Sum256([]byte("key-of-bob")), false)
	want("a token", lasting, true)
	want("a short token", short, true)
	now = now.Add(time.Hour)
	if _, err := tokens.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	want("a revoked token", lasting, false)
	want("an expired token", short, false)
	var read auth.Digest
	if text, err := lasting.MarshalText(); err != nil || read.UnmarshalText(text) != nil || read != lasting {
		t.Errorf("the digest became %x: %v", read, err)
	}
	if read.UnmarshalText([]byte("12")) == nil {
		t.Error("a short digest was read")
	}
}
