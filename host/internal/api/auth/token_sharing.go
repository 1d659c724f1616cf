package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// TokenSharing is what tokens need where other hosts issue and revoke tokens in the same store.
type TokenSharing struct {
	// Find reads a token from the store by the digest of its text, or returns [ErrNoToken].
	Find func(ctx context.Context, digest [sha256.Size]byte) (IssuedToken, error)
	// IsCurrent reports whether [Tokens.Refresh] has read what the other hosts have changed.
	IsCurrent func() bool
}

// findTimeout bounds the read of a token that this host does not know.
const findTimeout = 2 * time.Second

// tokenRetry is how long callers wait while the store cannot be read.
const tokenRetry = time.Second

// Share makes t take part in what other hosts change. It is called before t is used.
func (t *Tokens) Share(s TokenSharing) { t.sharing = &s }

// find finds a token by the digest of its text. Where hosts share the store, a token that is not
// known here may have been issued by another host a moment ago, and a host that cannot read what
// was revoked vouches for no token.
func (t *Tokens) find(ctx context.Context, digest [sha256.Size]byte) (IssuedToken, error) {
	if t.sharing != nil && !t.sharing.IsCurrent() {
		return IssuedToken{}, storeUnavailable(errors.New("what other hosts have revoked cannot be read"))
	}
	if i, ok := t.known(digest); ok {
		return i, nil
	}
	if t.sharing == nil {
		return IssuedToken{}, ErrUnknown
	}
	ctx, stop := context.WithTimeout(ctx, findTimeout)
	defer stop()
	i, err := t.sharing.Find(ctx, digest)
	switch {
	case errors.Is(err, ErrNoToken):
		return IssuedToken{}, ErrUnknown
	case err != nil:
		return IssuedToken{}, storeUnavailable(err)
	}
	return i, nil
}

// known is a token in memory.
func (t *Tokens) known(digest [sha256.Size]byte) (IssuedToken, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.byDigest[digest]
	if !ok {
		return IssuedToken{}, false
	}
	return *i, true
}

func storeUnavailable(err error) error {
	return &Unavailable{Backend: "[store]", Err: err, Retry: tokenRetry}
}

// Refresh reads the tokens again, as other hosts have changed them.
func (t *Tokens) Refresh(ctx context.Context) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	all, err := t.store.Tokens(ctx)
	if err != nil {
		return fmt.Errorf("read the issued tokens again: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before, unsaved := t.byID, t.unsaved
	t.byID, t.byDigest = make(map[string]*IssuedToken, len(all)), make(map[[sha256.Size]byte]*IssuedToken, len(all))
	t.unsaved = map[string]bool{}
	for _, i := range all {
		if unsaved[i.ID] {
			t.unsaved[i.ID] = true
			i.Used = before[i.ID].Used
		}
		t.index(i)
	}
	return nil
}
