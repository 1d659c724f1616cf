package gatewaytest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway/state"
)

// memory is a [state.Store] in memory.
type memory struct {
	mu      sync.Mutex
	records map[state.Key]state.Record
}

func newMemory() *memory { return &memory{records: map[state.Key]state.Record{}} }

func live(r state.Record) bool { return r.Expires.IsZero() || time.Now().Before(r.Expires) }

// Get is state.Store's.
func (m *memory) Get(_ context.Context, k state.Key) (state.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[k]
	if !ok || !live(r) {
		return state.Record{}, state.ErrNotFound
	}
	return r, nil
}

// Put is state.Store's.
func (m *memory) Put(_ context.Context, r state.Record) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.records[r.Key]
	if !ok || !live(old) {
		old.Version = 0
	}
	if old.Version != r.Version {
		return 0, state.ErrVersion
	}
	if len(r.Value) > state.MaxValue || len(r.Key.Name) > state.MaxName || !ok && m.ofRealm(r.Key) >= state.MaxOfRealm {
		return 0, state.ErrFull
	}
	r.Version++
	r.Value = bytes.Clone(r.Value)
	m.records[r.Key] = r
	return r.Version, nil
}

// ofRealm counts a realm's records. m.mu is held.
func (m *memory) ofRealm(k state.Key) (n int) {
	for own := range m.records {
		if own.Tenant == k.Tenant && own.Gateway == k.Gateway && own.Realm == k.Realm {
			n++
		}
	}
	return n
}

// Delete is state.Store's.
func (m *memory) Delete(_ context.Context, k state.Key, version int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.records[k]; ok && version != 0 && r.Version != version {
		return state.ErrVersion
	}
	delete(m.records, k)
	return nil
}

// List is state.Store's.
func (m *memory) List(_ context.Context, k, after state.Key, limit int) (list []state.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for own, r := range m.records {
		same := own.Tenant == k.Tenant && own.Gateway == k.Gateway && own.Kind == k.Kind && (k.Realm == "" || own.Realm == k.Realm)
		if same && comparePlace(own, after) > 0 && live(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b state.Record) int { return comparePlace(a.Key, b.Key) })
	return list[:min(limit, len(list))], nil
}

// comparePlace orders keys as lists do.
func comparePlace(a, b state.Key) int {
	return cmp.Or(strings.Compare(a.Realm, b.Realm), strings.Compare(a.Name, b.Name))
}
