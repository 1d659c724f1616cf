package acp

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
)

// smallStore has places for so many records of a realm, and fails the next Delete with fails.
type smallStore struct {
	state.Store
	most  int
	fails error
}

func (s *smallStore) Put(ctx context.Context, r state.Record) (int64, error) {
	kept, err := s.List(ctx, state.Key{Tenant: r.Key.Tenant, Gateway: Name, Realm: r.Key.Realm, Kind: kindConversation}, state.Key{}, s.most)
	if err == nil && r.Version == 0 && len(kept) == s.most {
		err = state.ErrFull
	}
	if err != nil {
		return 0, err
	}
	return s.Store.Put(ctx, r)
}

func (s *smallStore) Delete(ctx context.Context, k state.Key, version int64) error {
	if err := s.fails; err != nil {
		s.fails = nil
		return err
	}
	return s.Store.Delete(ctx, k, version)
}

// TestManyThreads: a realm with as many records as it may have goes on: the threads that
// were silent for longest make room, not those with a question that waits, and not another
// realm's. A store that is full of other things loses none.
func TestManyThreads(t *testing.T) {
	t.Parallel()
	const most = 150
	store := &smallStore{Store: gatewaytest.New().State(), most: most}
	s := newRecords(store, most)
	put := func(realm string, n int, value string) (state.Key, error) {
		k := threadKey("default", realm, fmt.Sprintf("%032d", n))
		_, err := s.Put(t.Context(), state.Record{Key: k, Value: []byte(value), Expires: time.Now().Add(time.Duration(n) * time.Hour)})
		return k, err
	}
	has := func(k state.Key) bool {
		_, err := store.Get(t.Context(), k)
		return err == nil
	}
	other, err := put("other", 1, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var keys []state.Key
	for n := range most {
		value := `{}`
		if n == 0 {
			value = `{"open":[{"id":"q"}]}`
		}
		k, err := put("acme", n+1, value)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	away := errors.New("the store is away")
	store.fails = away
	if _, err := put("acme", most+1, `{}`); !errors.Is(err, state.ErrFull) || !errors.Is(err, away) {
		t.Errorf("a store that fails: %v", err)
	}
	last, err := put("acme", most+1, `{}`)
	if err != nil || !has(last) || !has(keys[0]) || has(keys[1]) || has(keys[most/10]) || !has(keys[most/10+1]) || !has(other) {
		t.Errorf("%v; the newest %v, with a question %v, the oldest %v, %v, those after them %v, another realm's %v",
			err, has(last), has(keys[0]), has(keys[1]), has(keys[most/10]), has(keys[most/10+1]), has(other))
	}
	store.most = most / 2 // other records have its places
	if _, err := put("acme", most+2, `{}`); !errors.Is(err, state.ErrFull) || !has(keys[most/10+1]) {
		t.Errorf("full of other things: %v, kept %v", err, has(keys[most/10+1]))
	}
}
