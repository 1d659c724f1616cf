package state_test

import (
	"errors"
	"testing"
	"time"

	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
)

type notes struct {
	List []string `json:"list,omitempty"`
}

// A value is loaded as it was changed last, and a change that leaves nothing where nothing
// was writes no record.
func TestChange(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	key := state.Key{Tenant: "acme", Gateway: "toy", Realm: "shop", Kind: "conversation", Name: "a"}
	change := func(f func(*notes) error) error { return state.Change(t.Context(), rt.State(), key, time.Hour, f) }
	if err := change(func(*notes) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.State().Get(t.Context(), key); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a change to nothing has left a record: %v", err)
	}
	refused := errors.New("refused")
	if err := change(func(n *notes) error { n.List = []string{"lost"}; return refused }); !errors.Is(err, refused) {
		t.Errorf("a refused change: %v", err)
	}
	between := true
	err := change(func(n *notes) error {
		if between {
			between = false
			if err := change(func(n *notes) error { n.List = append(n.List, "one"); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		n.List = append(n.List, "two")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, version, err := state.Load[notes](t.Context(), rt.State(), key)
	if err != nil || version == 0 || len(got.List) != 2 || got.List[0] != "one" {
		t.Errorf("%+v of version %d, %v", got, version, err)
	}
	if _, err := state.Save(t.Context(), rt.State(), key, version-1, got, time.Hour); !errors.Is(err, state.ErrVersion) {
		t.Errorf("over another version: %v", err)
	}
}
