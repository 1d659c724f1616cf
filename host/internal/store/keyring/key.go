package keyring

import (
	"cmp"
	"slices"
	"time"
)

// State is what a key can still do.
type State int

// The states of a key.
const (
	Unknown State = iota
	// Current keys seal and open.
	Current
	// Retired keys only open.
	Retired
	// Destroyed keys are gone.
	Destroyed
)

// String gives the state as operators read it.
func (s State) String() string { return [...]string{"unknown", "current", "retired", "destroyed"}[s] }

// key is one data key. It does not change, but for secret, which is nil once it
// is destroyed.
type key struct {
	id                          ID
	tenant                      string
	created, retired, destroyed time.Time
	secret                      []byte
}

func (k *key) state() State {
	switch {
	case k == nil:
		return Unknown
	case !k.destroyed.IsZero():
		return Destroyed
	case !k.retired.IsZero():
		return Retired
	}
	return Current
}

// Entry is what is told of a key. Times are in UTC and zero for what has not
// happened.
type Entry struct {
	ID                          ID
	Tenant                      string
	State                       State
	Created, Retired, Destroyed time.Time
}

// Entries lists the keys by tenant, the oldest first.
func (r *Ring) Entries() []Entry {
	keys := r.sorted()
	slices.SortStableFunc(keys, func(a, b *key) int { return cmp.Compare(a.tenant, b.tenant) })
	list := make([]Entry, len(keys))
	for i, k := range keys {
		list[i] = Entry{k.id, k.tenant, k.state(), k.created, k.retired, k.destroyed}
	}
	return list
}
