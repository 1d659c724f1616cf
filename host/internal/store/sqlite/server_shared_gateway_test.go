package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"skep/host/internal/gateway/state"
	"skep/host/internal/store/pgtest"
)

// TestSharedFirstRecords: hosts that write the first records of a realm at once all do, and one
// of those that write the same record.
func TestSharedFirstRecords(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	hosts := []*Store{openShared(t, dsn), openShared(t, dsn), openShared(t, dsn)}
	const realms = 4
	for n := range realms {
		key := func(name string) state.Key {
			return state.Key{Tenant: "acme", Gateway: "toy", Realm: fmt.Sprint("realm-", n), Kind: "push", Name: name}
		}
		own, same := make([]error, len(hosts)), make([]error, len(hosts))
		var all sync.WaitGroup
		for i, s := range hosts {
			all.Go(func() { _, own[i] = s.GatewayState().Put(t.Context(), state.Record{Key: key(fmt.Sprint(i))}) })
			all.Go(func() { _, same[i] = s.GatewayState().Put(t.Context(), state.Record{Key: key("same")}) })
		}
		all.Wait()
		won := 0
		for i, s := range hosts {
			if _, err := s.GatewayState().Get(t.Context(), key(fmt.Sprint(i))); own[i] != nil || err != nil {
				t.Errorf("host %d wrote its record: %v, and read it: %v", i, own[i], err)
			}
			if same[i] == nil {
				won++
			} else if !errors.Is(same[i], state.ErrVersion) {
				t.Errorf("host %d: %v, want ErrVersion", i, same[i])
			}
		}
		if won != 1 {
			t.Errorf("%d hosts have made one record", won)
		}
	}
}
