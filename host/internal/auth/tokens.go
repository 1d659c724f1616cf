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

// prefix begins the text of every issued token.
const prefix = "skep_"

// Bounds of issued tokens: how many valid ones a tenant may have, how many that
// have ended are listed and for how long, and how often it is written that one was
// used.
const (
	maxTokens  = 10_000
	maxEnded   = 1_000
	usedEvery  = time.Hour
	keepsEnded = 30 * 24 * time.Hour
)

// Tokens are the tokens that a host has issued. It knows all of them in memory;
// the store is asked when one is made or revoked.
type Tokens struct {
	store TokenStore
	now   func() time.Time

	// change is held while the store is written, so that it and the memory
	// agree on the order.
	change sync.Mutex

	mu   sync.RWMutex
	byID map[string]*Issued
	// The map is keyed by digest: how long a look into it takes tells a caller
	// something of the digest of what he sent, which he knows.
	byDigest map[[sha256.Size]byte]*Issued
	// unsaved are those whose use is not written yet.
	unsaved map[string]bool
}

var _ Authority = (*Tokens)(nil)

// OpenTokens reads what was issued. A nil now means [time.Now].
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
		byID: make(map[string]*Issued, len(all)), byDigest: make(map[[sha256.Size]byte]*Issued, len(all)),
	}
	for _, i := range all {
		t.add(i)
	}
	return t, nil
}

func (t *Tokens) add(i Issued) {
	t.byID[i.ID], t.byDigest[i.SHA256] = &i, &i
}

// Claims implements [Authority].
func (t *Tokens) Claims(token string) bool { return strings.HasPrefix(token, prefix) }

// Authenticate implements [Authenticator].
func (t *Tokens) Authenticate(_ context.Context, token string) (Principal, error) {
	if !t.Claims(token) {
		return Principal{}, ErrUnknown
	}
	now, sum := t.now(), sha256.Sum256([]byte(token))
	t.mu.RLock()
	found, ok := t.byDigest[sum]
	var i Issued
	if ok {
		i = *found
	}
	t.mu.RUnlock()
	switch {
	case !ok:
		return Principal{}, ErrUnknown
	case !i.Revoked.IsZero():
		return Principal{}, unknown("the token %s is revoked", i.ID)
	case !i.Alive(now):
		return Principal{}, unknown("the token %s has expired", i.ID)
	}
	if now.Sub(i.Used) >= usedEvery {
		t.used(i.ID, now)
	}
	p := i.Principal
	p.Maker = i.maker()
	return p, nil
}

func (t *Tokens) used(id string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.byID[id]; ok {
		i.Used = now
		t.unsaved[id] = true
	}
}

// Issue makes a token for a principal that lives for a while, 0 meaning until
// it is revoked. Its text is returned here and kept nowhere.
func (t *Tokens) Issue(ctx context.Context, p Principal, life time.Duration, label, by string) (text string, i Issued, err error) {
	secret := make([]byte, 32)
	rand.Read(secret)
	text = prefix + base64.RawURLEncoding.EncodeToString(secret)
	now := t.now()
	i = Issued{ID: uuid.NewString(), Principal: p, Label: label, SHA256: sha256.Sum256([]byte(text)), By: by, Created: now}
	if life > 0 {
		i.Expires = now.Add(life)
	}
	t.change.Lock()
	defer t.change.Unlock()
	alive, ended := t.count(p.Tenant, now)
	if alive >= maxTokens {
		return "", Issued{}, fmt.Errorf("%w: tenant %q has %d; revoke some", ErrTooManyTokens, p.Tenant, alive)
	}
	if err := t.dropOldest(ctx, ended); err != nil {
		return "", Issued{}, err
	}
	if err := t.store.AddToken(ctx, i); err != nil {
		return "", Issued{}, fmt.Errorf("keep the token: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(i)
	return text, i, nil
}

// count returns how many tokens of a tenant are valid, and those that are not.
func (t *Tokens) count(tenant string, now time.Time) (alive int, ended []Issued) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, i := range t.byID {
		switch {
		case i.Tenant != tenant:
		case i.Alive(now):
			alive++
		default:
			ended = append(ended, *i)
		}
	}
	return alive, ended
}

// dropOldest forgets those that ended first, when there are more than are listed.
// It holds change.
func (t *Tokens) dropOldest(ctx context.Context, ended []Issued) error {
	n := len(ended) - maxEnded
	if n <= 0 {
		return nil
	}
	slices.SortFunc(ended, func(a, b Issued) int {
		return cmp.Or(a.ended().Compare(b.ended()), cmp.Compare(a.ID, b.ID))
	})
	var over []string
	for _, i := range ended[:n] {
		over = append(over, i.ID)
	}
	return t.drop(ctx, over)
}

// drop forgets tokens in the store and in memory. It holds change.
func (t *Tokens) drop(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := t.store.DropTokens(ctx, ids); err != nil {
		return fmt.Errorf("drop ended tokens: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		t.forget(t.byID[id])
	}
	return nil
}

// List returns the tokens of a tenant, or with an empty one of all, oldest
// first, those that are not valid any more for another 30 days, and at most about
// a thousand of them.
func (t *Tokens) List(tenant string) []Issued {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []Issued
	for _, i := range t.byID {
		if tenant == "" || i.Tenant == tenant {
			all = append(all, *i)
		}
	}
	slices.SortFunc(all, func(a, b Issued) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Get returns a token, or [ErrNoToken].
func (t *Tokens) Get(id string) (Issued, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if i, ok := t.byID[id]; ok {
		return *i, nil
	}
	return Issued{}, ErrNoToken
}

// Revoke ends a token for good. One that is revoked already stays as it is.
func (t *Tokens) Revoke(ctx context.Context, id string) (Issued, error) {
	t.change.Lock()
	defer t.change.Unlock()
	i, err := t.Get(id)
	if err != nil || !i.Revoked.IsZero() {
		return i, err
	}
	i.Revoked = t.now()
	if err := t.store.UpdateTokens(ctx, []Issued{i}); err != nil {
		return Issued{}, fmt.Errorf("revoke the token: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[id].Revoked = i.Revoked
	return i, nil
}

// Forget drops the tokens of a tenant from memory, as when it is erased.
func (t *Tokens) Forget(tenant string) {
	t.change.Lock()
	defer t.change.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.byID {
		if i.Tenant == tenant {
			t.forget(i)
		}
	}
}

func (t *Tokens) forget(i *Issued) {
	delete(t.byID, i.ID)
	delete(t.byDigest, i.SHA256)
	delete(t.unsaved, i.ID)
}

// Save writes which tokens were used, and drops those that ended long ago. The
// host calls it now and then, and before it stops.
func (t *Tokens) Save(ctx context.Context) error {
	t.change.Lock()
	defer t.change.Unlock()
	changed, over := t.unwritten()
	if len(changed) > 0 {
		if err := t.store.UpdateTokens(ctx, changed); err != nil {
			return fmt.Errorf("write which tokens were used: %w", err)
		}
	}
	if err := t.drop(ctx, over); err != nil {
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

func (t *Tokens) unwritten() (changed []Issued, over []string) {
	now := t.now()
	t.mu.RLock()
	defer t.mu.RUnlock()
	for id := range t.unsaved {
		changed = append(changed, *t.byID[id])
	}
	for id, i := range t.byID {
		if end := i.ended(); !end.IsZero() && now.Sub(end) >= keepsEnded {
			over = append(over, id)
		}
	}
	return changed, over
}
