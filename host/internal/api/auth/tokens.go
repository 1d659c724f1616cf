package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// tokenPrefix begins every issued token.
const tokenPrefix = "skep_"

// Limits of issued tokens: valid ones per tenant, ended ones that are listed and
// for how long, and the interval of writing the last use.
const (
	maxTokens         = 10_000
	maxEnded          = 1_000
	usedWriteInterval = time.Hour
	endedTTL          = 30 * 24 * time.Hour
)

// Tokens are the tokens that a host has issued. All are in memory; the store is
// written when one is issued or revoked.
type Tokens struct {
	store TokenStore
	now   func() time.Time
	// sharing is nil for a host that shares its store with no other.
	sharing *TokenSharing

	// writeMu is held during a write to the store, so that store and memory have
	// the same order. It comes before mu.
	writeMu sync.Mutex

	mu   sync.RWMutex
	byID map[string]*IssuedToken
	// The key is a digest: the time of a look-up can only reveal the digest of
	// the caller's own text.
	byDigest map[[sha256.Size]byte]*IssuedToken
	// unsaved holds the ids whose last use is not stored yet.
	unsaved map[string]bool
}

var _ Backend = (*Tokens)(nil)

// OpenTokens reads the stored tokens. A nil now means [time.Now].
func OpenTokens(ctx context.Context, store TokenStore, now func() time.Time) (*Tokens, error) {
	if now == nil {
		now = time.Now
	}
	all, err := store.Tokens(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the issued tokens: %w", err)
	}
	t := &Tokens{
		store: store, now: now, unsaved: map[string]bool{},
		byID: make(map[string]*IssuedToken, len(all)), byDigest: make(map[[sha256.Size]byte]*IssuedToken, len(all)),
	}
	for _, i := range all {
		t.index(i)
	}
	return t, nil
}

func (t *Tokens) index(i IssuedToken) {
	t.byID[i.ID], t.byDigest[i.SHA256] = &i, &i
}

// Claims implements [Backend].
func (t *Tokens) Claims(token string) bool { return strings.HasPrefix(token, tokenPrefix) }

// Authenticate implements [Authenticator].
func (t *Tokens) Authenticate(ctx context.Context, token string) (Principal, error) {
	if !t.Claims(token) {
		return Principal{}, ErrUnknown
	}
	i, err := t.find(ctx, sha256.Sum256([]byte(token)))
	now := t.now()
	switch {
	case err != nil:
		return Principal{}, err
	case !i.Revoked.IsZero():
		return Principal{}, unknownToken("the token %s is revoked", i.ID)
	case !i.ValidAt(now):
		return Principal{}, unknownToken("the token %s has expired", i.ID)
	case i.Role == Operator || !i.Role.Valid(): // it was written into the store by other hands
		return Principal{}, unknownToken("the token %s has the role %q, which no token has", i.ID, i.Role)
	}
	if now.Sub(i.Used) >= usedWriteInterval {
		t.markUsed(i.ID, now)
	}
	p := i.Principal
	p.Creator = i.creator()
	return p, nil
}

func (t *Tokens) markUsed(id string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.byID[id]; ok {
		i.Used = now
		t.unsaved[id] = true
	}
}

// Issue issues a token. A life of 0 means no end. The text is returned here and
// stored nowhere.
func (t *Tokens) Issue(ctx context.Context, p Principal, life time.Duration, label, by string) (text string, i IssuedToken, err error) {
	secret := make([]byte, 32)
	rand.Read(secret)
	text = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
	now := t.now()
	i = IssuedToken{ID: uuid.NewString(), Principal: p, Label: label, SHA256: sha256.Sum256([]byte(text)), By: by, Created: now}
	if life > 0 {
		i.Expires = now.Add(life)
	}
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	alive, ended := t.countTenant(p.Tenant, now)
	if alive >= maxTokens {
		return "", IssuedToken{}, fmt.Errorf("%w: tenant %q has %d; revoke some", ErrTooManyTokens, p.Tenant, alive)
	}
	if err := t.dropOldestEnded(ctx, ended); err != nil {
		return "", IssuedToken{}, err
	}
	if err := t.store.AddToken(ctx, i); err != nil {
		return "", IssuedToken{}, fmt.Errorf("keep the token: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index(i)
	return text, i, nil
}

// countTenant returns the number of a tenant's valid tokens, and its ended
// tokens.
func (t *Tokens) countTenant(tenant string, now time.Time) (alive int, ended []IssuedToken) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, i := range t.byID {
		switch {
		case i.Tenant != tenant:
		case i.ValidAt(now):
			alive++
		default:
			ended = append(ended, *i)
		}
	}
	return alive, ended
}

// dropOldestEnded drops the tokens that ended first, beyond maxEnded. The caller
// holds writeMu.
func (t *Tokens) dropOldestEnded(ctx context.Context, ended []IssuedToken) error {
	n := len(ended) - maxEnded
	if n <= 0 {
		return nil
	}
	slices.SortFunc(ended, func(a, b IssuedToken) int {
		return cmp.Or(a.endedAt().Compare(b.endedAt()), cmp.Compare(a.ID, b.ID))
	})
	var over []string
	for _, i := range ended[:n] {
		over = append(over, i.ID)
	}
	return t.dropTokens(ctx, over)
}

// dropTokens drops tokens from store and memory. The caller holds writeMu.
func (t *Tokens) dropTokens(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := t.store.DropTokens(ctx, ids); err != nil {
		return fmt.Errorf("drop ended tokens: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		t.removeLocked(t.byID[id])
	}
	return nil
}

// List returns the tokens of a tenant, or of all for an empty one, oldest first.
// Ended tokens are listed for 30 days, about a thousand at most.
func (t *Tokens) List(tenant string) []IssuedToken {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []IssuedToken
	for _, i := range t.byID {
		if tenant == "" || i.Tenant == tenant {
			all = append(all, *i)
		}
	}
	slices.SortFunc(all, func(a, b IssuedToken) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Get returns a token, or [ErrNoToken].
func (t *Tokens) Get(id string) (IssuedToken, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if i, ok := t.byID[id]; ok {
		return *i, nil
	}
	return IssuedToken{}, ErrNoToken
}

// Revoke ends a token. A revoked token stays as it is.
func (t *Tokens) Revoke(ctx context.Context, id string) (IssuedToken, error) {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	i, err := t.Get(id)
	if err != nil || !i.Revoked.IsZero() {
		return i, err
	}
	i.Revoked = t.now()
	if err := t.store.UpdateTokens(ctx, []IssuedToken{i}); err != nil {
		return IssuedToken{}, fmt.Errorf("revoke the token: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[id].Revoked = i.Revoked
	return i, nil
}

// DropTenant drops the tokens of an erased tenant from memory.
func (t *Tokens) DropTenant(tenant string) {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.byID {
		if i.Tenant == tenant {
			t.removeLocked(i)
		}
	}
}

func (t *Tokens) removeLocked(i *IssuedToken) {
	delete(t.byID, i.ID)
	delete(t.byDigest, i.SHA256)
	delete(t.unsaved, i.ID)
}

// Save writes the last uses and drops tokens that ended long ago. The host calls
// it periodically and before it stops.
func (t *Tokens) Save(ctx context.Context) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	changed, over := t.pendingWrites()
	if len(changed) > 0 {
		if err := t.store.UpdateTokens(ctx, changed); err != nil {
			return fmt.Errorf("write which tokens were used: %w", err)
		}
	}
	if err := t.dropTokens(ctx, over); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range changed {
		if now, ok := t.byID[i.ID]; ok && now.Used.Equal(i.Used) {
			delete(t.unsaved, i.ID)
		}
	}
	return nil
}

func (t *Tokens) pendingWrites() (changed []IssuedToken, over []string) {
	now := t.now()
	t.mu.RLock()
	defer t.mu.RUnlock()
	for id := range t.unsaved {
		changed = append(changed, *t.byID[id])
	}
	for id, i := range t.byID {
		if end := i.endedAt(); !end.IsZero() && now.Sub(end) >= endedTTL {
			over = append(over, id)
		}
	}
	return changed, over
}
