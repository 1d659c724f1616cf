package sqlite

import (
	"testing"

	"skep/host/internal/store/pgtest"
)

// TestSharedLoadedVersion: a definition that is loaded or unloaded raises the version in one group with it, and so
// does the end of an erasure. One that is only kept raises none.
func TestSharedLoadedVersion(t *testing.T) {
	t.Parallel()
	s := openShared(t, pgtest.Schema(t))
	d := Definition{Tenant: "acme", Swarm: "hive", Digest: "d", Created: testTime, Body: []byte("{}")}
	want := func(did string, err error, version int64) {
		t.Helper()
		if got := versionOf(t, s, LoadedVersion); err != nil || got != version {
			t.Errorf("%s: %v, the version is %d, want %d", did, err, got, version)
		}
	}
	want("AddDefinition", s.AddDefinition(t.Context(), d), 0)
	want("LoadDefinition", s.LoadDefinition(t.Context(), Loaded{Tenant: "acme", Swarm: "hive", At: testTime, By: "ada", Text: []byte("{}")}, d), 1)
	want("UnloadDefinition", s.UnloadDefinition(t.Context(), "acme", "hive"), 2)
	want("Erase", s.Erase(t.Context(), "acme"), 3)
}
