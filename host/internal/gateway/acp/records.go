package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"skep/host/internal/gateway/state"
)

// records is the store of the gateway's records. Of a realm that has as many as it may,
// the threads that were silent for longest make room: our agents begin one with every
// conversation, and a conversation has no end.
type records struct {
	state.Store
	// most is how many threads of a realm are kept.
	most int
}

// Put implements [state.Store].
func (s records) Put(ctx context.Context, r state.Record) (version int64, err error) {
	version, err = s.Store.Put(ctx, r)
	if errors.Is(err, state.ErrFull) {
		if made, dropErr := s.dropSilent(ctx, r.Key); dropErr != nil || !made {
			return version, errors.Join(err, dropErr)
		}
		version, err = s.Store.Put(ctx, r)
	}
	return version, err
}

// maxThreads is how many threads of a realm are kept at most: the rest of its records is
// for its mailbox.
const maxThreads = state.MaxOfRealm - maxMailboxMessages

// dropSilent removes threads of a realm in which nothing waits, the oldest first, until a
// tenth of its places is free. It reports false where the realm's records are not what
// fills the store.
func (s records) dropSilent(ctx context.Context, of state.Key) (made bool, err error) {
	of = threadKey(of.Tenant, of.Realm, "")
	var silent []state.Record
	count := 0
	for after := (state.Key{}); ; {
		page, err := s.List(ctx, of, after, mailboxPage)
		if err != nil {
			return false, err
		}
		for _, r := range page {
			var t thread
			count++
			after = r.Key
			if json.Unmarshal(r.Value, &t) != nil || len(t.Open) == 0 {
				r.Value = nil
				silent = append(silent, r)
			}
		}
		if len(page) < mailboxPage {
			break
		}
	}
	if count < s.most {
		return false, nil
	}
	slices.SortFunc(silent, func(a, b state.Record) int { return a.Expires.Compare(b.Expires) })
	for _, r := range silent[:min(len(silent), count-s.most*9/10)] {
		if err := s.Delete(ctx, r.Key, r.Version); err != nil && !errors.Is(err, state.ErrVersion) {
			return false, err
		}
		made = true
	}
	return made, nil
}
