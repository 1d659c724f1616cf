package sqlite

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"skep/host/internal/peer/registry"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
)

// TestServerSwarms: registered swarms are on the server wrapped, in the order of their names, and are changed by who has
// read them last alone. Each change raises the version, and one that is damaged hides no other.
func TestServerSwarms(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := openShared(t, dsn).Secrets(), openShared(t, dsn).Secrets()
	version := pgtest.Number(t, dsn, "SELECT coalesce(sum(n), 0)::bigint FROM changes WHERE name = 'secrets'")
	before := version()
	swap := func(s *ServerSecrets, was registry.Record, text string, want bool) registry.Record {
		t.Helper()
		var to []byte
		if text != "" {
			to = []byte(text)
		}
		is, ok, err := s.SwapSwarm(t.Context(), was, to)
		if ok != want || err != nil {
			t.Errorf("SwapSwarm(%q, %q) = %v, %v", was.Text, text, ok, err)
		}
		return is
	}
	yard := swap(one, registry.Record{Name: "yard"}, "first", true)
	swap(other, registry.Record{Name: "yard"}, "second", false)
	swap(other, registry.Record{Name: "Depot/~"}, "depot", true)
	last := swap(other, yard, "third", true)
	swap(one, yard, "fourth", false)
	swap(one, yard, "", false)
	if _, _, err := one.KeepSecret(t.Context(), "letters.key", []byte("key")); err != nil {
		t.Fatal(err)
	}
	list, err := one.Swarms(t.Context())
	var got []string
	for _, r := range list {
		got = append(got, r.Name+" "+string(r.Text))
	}
	if !slices.Equal(got, []string{"Depot/~ depot", "yard third"}) || !bytes.Equal(list[1].Revision, last.Revision) || err != nil {
		t.Errorf("listed are %q, %v", got, err)
	}
	if n := version(); n != before+3 {
		t.Errorf("the version went from %d to %d", before, n)
	}
	if _, err := one.db.Exec("UPDATE secrets SET value = value || 'x'::bytea WHERE name = 'swarm/yard'"); err != nil {
		t.Fatal(err)
	}
	list, err = other.Swarms(t.Context())
	if err != nil || len(list) != 2 || list[0].Damaged != nil || !errors.Is(list[1].Damaged, keyring.ErrWrongKEK) {
		t.Fatalf("listed are %+v, %v", list, err)
	}
	swap(other, list[1], "", true)
	if bytes.Contains(list[0].Revision, []byte("depot")) {
		t.Error("the server can read it")
	}
}
