package auth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"skep/host/internal/api/auth"
)

// sharedTokens are the tokens of a host that shares a store with others.
func sharedTokens(t *testing.T, l *ledger, now func() time.Time, current *bool) *auth.Tokens {
	t.Helper()
	tokens := openTokens(t, l, now)
	tokens.Share(auth.TokenSharing{
		Find: func(ctx context.Context, digest [sha256.Size]byte) (auth.IssuedToken, error) {
			all, err := l.Tokens(ctx)
			for _, i := range all {
				if i.SHA256 == digest {
					return i, err
				}
			}
			if err == nil {
				err = auth.ErrNoToken
			}
			return auth.IssuedToken{}, err
		},
		IsCurrent: func() bool { return *current },
	})
	return tokens
}

// TestSharedTokens: a token that another host has issued is good at once, and one that it has
// revoked until the tokens are read again.
func TestSharedTokens(t *testing.T) {
	t.Parallel()
	l, current := newLedger(), true
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	a, b := sharedTokens(t, l, clock, &current), sharedTokens(t, l, clock, &current)
	want := func(tokens *auth.Tokens, text string, want error) {
		t.Helper()
		if _, err := tokens.Authenticate(t.Context(), text); !errors.Is(err, want) {
			t.Errorf("Authenticate() = %v, want %v", err, want)
		}
	}
	text, i := issue(t, a, alice, 0)
	want(b, text, nil)
	want(b, "skep_guessed", auth.ErrUnknown)
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	want(b, text, nil) // it is used, which is not stored yet
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := b.Get(i.ID); err != nil || !again.Used.Equal(now) {
		t.Errorf("after it was read again the token was used at %v, %v", again.Used, err)
	}
	if _, err := a.Revoke(t.Context(), i.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(b, text, auth.ErrUnknown)
	if err := a.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(a, text, auth.ErrUnknown)
}

// TestSharedTokensUnread: a host that cannot read what others have revoked says so, and vouches for
// no token.
func TestSharedTokensUnread(t *testing.T) {
	t.Parallel()
	l, current := newLedger(), true
	tokens := sharedTokens(t, l, nil, &current)
	text, _ := issue(t, tokens, alice, 0)
	l.fail = errors.New("the server is away")
	var unavailable *auth.Unavailable
	if _, err := tokens.Authenticate(t.Context(), "skep_other"); !errors.As(err, &unavailable) {
		t.Errorf("a token that cannot be looked up: %v", err)
	}
	if err := tokens.Refresh(t.Context()); !errors.Is(err, l.fail) {
		t.Errorf("Refresh() = %v", err)
	}
	if _, err := tokens.Authenticate(t.Context(), text); err != nil {
		t.Errorf("a token that was known before: %v", err)
	}
	current = false
	if _, err := tokens.Authenticate(t.Context(), text); !errors.As(err, &unavailable) {
		t.Errorf("a token that may be revoked: %v", err)
	}
}
