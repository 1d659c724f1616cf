package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"skep/host/internal/gateway/state"
	"skep/host/internal/store/keyring"
)

// A realm that holds the most records gets no other, and one for each that goes.
func TestGatewayStateOfFullRealm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	put := func(name string, version int64) error {
		_, err := s.GatewayState().Put(t.Context(), state.Record{Key: testState("acme", name), Version: version})
		return err
	}
	first, err := s.GatewayState().Put(t.Context(), state.Record{Key: testState("acme", "first")})
	mustDo(t, err)
	exec(t, openRaw(t, dir), fmt.Sprintf("UPDATE gateway_realms SET records = %d", state.MaxOfRealm-1))
	mustDo(t, put("last", 0))
	if err := put("more", 0); !errors.Is(err, state.ErrFull) {
		t.Errorf("a record too many: %v, want ErrFull", err)
	}
	mustDo(t, put("first", first))
	mustDo(t, s.GatewayState().Delete(t.Context(), testState("acme", "first"), 0))
	mustDo(t, put("more", 0))
}

// A record does not open at another name, realm or gateway.
func TestGatewayStateStaysInPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	_, err := s.GatewayState().Put(t.Context(), state.Record{Key: testState("acme", "a"), Value: []byte(planted)})
	mustDo(t, err)
	for _, move := range []string{
		"UPDATE gateway_state SET name = CAST('b' AS BLOB)", "UPDATE gateway_realms SET gateway = CAST('other' AS BLOB)",
	} {
		exec(t, openRaw(t, dir), move)
		for _, k := range []state.Key{testState("acme", "b"), {Tenant: "acme", Gateway: "other", Realm: "acme", Kind: "push", Name: "b"}} {
			if r, err := s.GatewayState().Get(t.Context(), k); err == nil {
				t.Errorf("after %s Get(%+v) = %q", move, k, r.Value)
			}
		}
	}
}

// A restored backup has the records.
func TestGatewayStateInBackup(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	plant(t, s, "acme", "t1", planted)
	backup := filepath.Join(t.TempDir(), fileName)
	mustDo(t, s.Backup(t.Context(), backup))
	restored := openTest(t, filepath.Dir(backup))
	r, err := restored.GatewayState().Get(t.Context(), testState("acme", "t1"))
	if err != nil || string(r.Value) != planted {
		t.Errorf("Get from the backup = %q, %v", r.Value, err)
	}
}
