package uamp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/hub"
	"skep/host/internal/gateway/uamp/seal"
)

// Limits of the manifests of foreign agents.
const (
	maxManifests  = 1024 // that are kept
	manifestAge   = 5 * time.Minute
	noManifestAge = 30 * time.Second // of there being none that counts
	manifestTime  = 10 * time.Second // of a fetch
	// refetchPause is the least time between two fetches of a manifest because of what it does
	// not list.
	refetchPause = 30 * time.Second
)

// partnerManifests fetches and keeps the manifests of foreign agents. It is safe for concurrent
// use.
type partnerManifests struct {
	proof   *Proof
	fetches singleflight.Group

	mu   sync.Mutex
	kept map[manifestKey]keptManifest
}

// manifestKey is whose manifest is kept. One that came from another address does not count.
type manifestKey struct{ partner, url, agent string }

// keptManifest is a manifest, nil where the agent has none, or why it does not count.
type keptManifest struct {
	manifest *envelope.Manifest
	err      error
	keys     []string // that were pinned
	until    time.Time
	// nextRefetch is from when the manifest may be fetched because of what it does not list.
	nextRefetch time.Time
}

func newPartnerManifests(p *Proof) *partnerManifests {
	return &partnerManifests{proof: p, kept: map[manifestKey]keptManifest{}}
}

// check returns why the recipient of an envelope of so many bytes does not take it, by its
// manifest. An agent without a manifest takes everything. A kept manifest refuses nothing
// before it was fetched again, since the agent may take more by now.
func (m *partnerManifests) check(ctx context.Context, p gateway.Partner, e envelope.Envelope, size int) error {
	got, isKept, err := m.get(ctx, p, e.To[0])
	if err != nil || got == nil {
		return err
	}
	err = got.Check(e, size)
	if err == nil || !isKept {
		return err
	}
	key, pinned := manifestKeyOf(p, e.To[0])
	if got, err = m.getOnce(ctx, p, key, pinned, m.beginRefetch); err != nil || got == nil {
		return err
	}
	return got.Check(e, size)
}

// manifestKeyOf is the key of an agent's manifest, and the keys that its partner's table pins.
func manifestKeyOf(p gateway.Partner, agent string) (key manifestKey, pinned []string) {
	pinned, _ = p.Options[optionKeys].([]string)
	return manifestKey{p.Name, manifestAt(p, agent), agent}, pinned
}

// get returns the manifest of an agent, nil for none; isKept is set for one from memory.
func (m *partnerManifests) get(ctx context.Context, p gateway.Partner, agent string) (got *envelope.Manifest, isKept bool, err error) {
	key, pinned := manifestKeyOf(p, agent)
	if key.url == "" {
		return nil, false, nil
	}
	if k, ok := m.find(key, pinned); ok {
		return k.manifest, true, k.err
	}
	got, err = m.getOnce(ctx, p, key, pinned, func(manifestKey) bool { return false })
	return got, false, err
}

// getOnce fetches a manifest, once for all waiting callers, and keeps it. mayRefetch reports
// whether one that is kept by now is fetched again.
func (m *partnerManifests) getOnce(ctx context.Context, p gateway.Partner, key manifestKey, pinned []string, mayRefetch func(manifestKey) bool) (*envelope.Manifest, error) {
	done := m.fetches.DoChan(strings.Join([]string{key.partner, key.url, key.agent}, "\n"), func() (any, error) {
		if k, ok := m.find(key, pinned); ok && !mayRefetch(key) {
			return k.manifest, k.err
		}
		got, err := m.fetch(context.WithoutCancel(ctx), p, key.url, key.agent)
		if err == nil || errors.As(err, new(*gateway.Refusal)) {
			m.keep(key, keptManifest{manifest: got, err: err, keys: pinned})
		}
		return got, err
	})
	select {
	case result := <-done:
		got, _ := result.Val.(*envelope.Manifest)
		return got, result.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// beginRefetch reports whether a kept manifest may be fetched because of what it does not list,
// and begins the pause before the next time.
func (m *partnerManifests) beginRefetch(key manifestKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, now := m.kept[key], time.Now()
	if now.Before(k.nextRefetch) {
		return false
	}
	k.nextRefetch = now.Add(refetchPause)
	m.kept[key] = k
	return true
}

func (m *partnerManifests) find(key manifestKey, pinned []string) (keptManifest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[key]
	return k, ok && time.Now().Before(k.until) && slices.Equal(k.keys, pinned)
}

// keep keeps a manifest, in place of one that is over, else of any, when there are many.
func (m *partnerManifests) keep(key manifestKey, k keptManifest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if k.until = now.Add(manifestAge); k.manifest == nil {
		k.until = now.Add(noManifestAge)
	}
	before, has := m.kept[key]
	k.nextRefetch = before.nextRefetch
	if !has && len(m.kept) >= maxManifests {
		var drop manifestKey
		for other, old := range m.kept {
			drop = other
			if now.After(old.until) {
				break
			}
		}
		delete(m.kept, drop)
	}
	m.kept[key] = k
}

// manifestAt is where the manifest of an agent is, beside its DID document (U-101). It is empty
// for an id that names no host.
func manifestAt(p gateway.Partner, agent string) string {
	id, err := did.Parse(agent)
	if err != nil || id.Host() == "" {
		return ""
	}
	at := hub.ManifestURL(id)
	if p.URL != "" {
		at = strings.TrimSuffix(p.URL, "/") + strings.TrimPrefix(at, "https://"+id.Host())
	}
	return at
}

// fetch fetches a manifest, and verifies that its agent has signed it. It is nil where there is
// none, and where the partner redirects or does not answer: sending shows why.
func (m *partnerManifests) fetch(ctx context.Context, p gateway.Partner, at, agent string) (*envelope.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, manifestTime)
	defer cancel()
	text, err := hub.FetchSigned(ctx, p.Client, at)
	if errors.Is(err, gateway.ErrRedirect) || err != nil && !errors.As(err, new(*gateway.Refusal)) && outcomeOf(err).State == gateway.Unanswered {
		return nil, nil
	}
	if text == "" || err != nil {
		return nil, err
	}
	payload, err := m.open(ctx, p, agent, text)
	if err == nil {
		var got envelope.Manifest
		if got, err = envelope.ReadManifest(payload); err == nil {
			return &got, nil
		}
	}
	if outcomeOf(err).State == gateway.Later { // its keys cannot be had now
		return nil, err
	}
	return nil, gateway.Refuse("the manifest of %s at %s does not count: %v", agent, at, err)
}

// open returns what an agent of a partner has signed.
func (m *partnerManifests) open(ctx context.Context, p gateway.Partner, agent, text string) ([]byte, error) {
	h, err := seal.ReadDocumentHeader(text)
	if err != nil {
		return nil, err
	}
	keys, err := m.proof.keys(ctx, p.Caller(), agent, h.KeyID)
	if err != nil {
		return nil, err
	}
	return seal.ReadDocument(text, agent, keys, time.Now())
}
