package auth

import (
	"sync"
	"time"
)

// generations is a map that forgets in two generations: what was put since the
// last turn, and what was put in the span before. It holds at most twice max
// values and needs no list and no timer. It is not safe for concurrent use.
type generations[K comparable, V any] struct {
	span       time.Duration
	max        int
	young, old map[K]V
	turned     time.Time
}

func newGenerations[K comparable, V any](span time.Duration, max int, now time.Time) generations[K, V] {
	return generations[K, V]{span: span, max: max, young: map[K]V{}, turned: now}
}

// rotate begins a new generation when the young one is full or older than the
// span.
func (g *generations[K, V]) rotate(now time.Time) {
	if now.Sub(g.turned) >= g.span || len(g.young) >= g.max {
		g.young, g.old, g.turned = map[K]V{}, g.young, now
	}
}

func (g *generations[K, V]) get(key K) (value V, ok bool) {
	if value, ok = g.young[key]; !ok {
		value, ok = g.old[key]
	}
	return value, ok
}

// RecentMap remembers values for a span, and at most twice a maximum of them:
// beyond it the oldest are forgotten early. It is safe for concurrent use.
type RecentMap[K comparable, V any] struct {
	now func() time.Time

	mu     sync.Mutex
	values generations[K, dated[V]]
}

type dated[V any] struct {
	value V
	at    time.Time
}

// NewRecentMap returns an empty map. A nil now means [time.Now].
func NewRecentMap[K comparable, V any](span time.Duration, max int, now func() time.Time) *RecentMap[K, V] {
	if now == nil {
		now = time.Now
	}
	return &RecentMap[K, V]{now: now, values: newGenerations[K, dated[V]](span, max, now())}
}

// Get returns a value that was put less than the span ago.
func (m *RecentMap[K, V]) Get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.values.get(key)
	if age := m.now().Sub(d.at); !ok || age < 0 || age >= m.values.span {
		return value, false
	}
	return d.value, true
}

// Put remembers a value from now on.
func (m *RecentMap[K, V]) Put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.values.rotate(now)
	m.values.young[key] = dated[V]{value, now}
}

// Delete forgets a value.
func (m *RecentMap[K, V]) Delete(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values.young, key)
	delete(m.values.old, key)
}
