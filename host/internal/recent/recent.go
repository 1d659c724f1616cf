// Package recent owns a memory of what was put into it lately, bounded in time
// and in number. It must not know what the values mean. It starts no goroutine.
package recent

import (
	"sync"
	"time"
)

// Map remembers values for a span, and no more of them than twice a bound:
// beyond it the oldest are forgotten early. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	span time.Duration
	max  int
	now  func() time.Time

	mu sync.Mutex
	// young holds what was put since turned, old what was put in the span
	// before.
	young, old map[K]dated[V]
	turned     time.Time
}

type dated[V any] struct {
	value V
	at    time.Time
}

// New returns an empty memory. A nil now means [time.Now].
func New[K comparable, V any](span time.Duration, max int, now func() time.Time) *Map[K, V] {
	if now == nil {
		now = time.Now
	}
	return &Map[K, V]{span: span, max: max, now: now, young: map[K]dated[V]{}, turned: now()}
}

// Get returns a value that was put less than the span ago.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.young[key]
	if !ok {
		d, ok = m.old[key]
	}
	if age := m.now().Sub(d.at); !ok || age < 0 || age >= m.span {
		return value, false
	}
	return d.value, true
}

// Put remembers a value from now on.
func (m *Map[K, V]) Put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if now.Sub(m.turned) >= m.span || len(m.young) >= m.max {
		m.young, m.old, m.turned = map[K]dated[V]{}, m.young, now
	}
	m.young[key] = dated[V]{value, now}
}

// Drop forgets a value.
func (m *Map[K, V]) Drop(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.young, key)
	delete(m.old, key)
}
