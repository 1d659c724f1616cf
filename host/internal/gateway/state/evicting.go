package state

import (
	"context"
	"errors"
	"slices"
)

// Evicting is a store in which records of one kind make room: of a realm that has as many
// records as it may, those that were not written for longest are removed. They are what a
// gateway keeps of conversations: our agents begin one with every task, and a conversation
// has no end.
type Evicting struct {
	Store
	Kind string
	// Most is how many records of the kind and a realm are kept.
	Most int
	// InUse reports whether something waits for what a value describes: it stays.
	InUse func(value []byte) bool
}

// Put implements [Store].
func (s Evicting) Put(ctx context.Context, r Record) (version int64, err error) {
	version, err = s.Store.Put(ctx, r)
	if errors.Is(err, ErrFull) {
		if made, evictErr := s.evict(ctx, r.Key); evictErr != nil || !made {
			return version, errors.Join(err, evictErr)
		}
		version, err = s.Store.Put(ctx, r)
	}
	return version, err
}

// evict removes records that are not in use, the oldest first, until a tenth of the places
// is free. It reports false where the realm's records of the kind are not what fills the
// store.
func (s Evicting) evict(ctx context.Context, of Key) (made bool, err error) {
	of = Key{Tenant: of.Tenant, Gateway: of.Gateway, Realm: of.Realm, Kind: s.Kind}
	var unused []Record
	count := 0
	err = Each(ctx, s, of, func(r Record) error {
		count++
		if !s.InUse(r.Value) {
			r.Value = nil
			unused = append(unused, r)
		}
		return nil
	})
	if err != nil || count < s.Most {
		return false, err
	}
	slices.SortFunc(unused, func(a, b Record) int { return a.Expires.Compare(b.Expires) })
	for _, r := range unused[:min(len(unused), count-s.Most*9/10)] {
		if err := s.Delete(ctx, r.Key, r.Version); err != nil && !errors.Is(err, ErrVersion) {
			return false, err
		}
		made = true
	}
	return made, nil
}
