package host

import (
	"testing"

	"skep/host/internal/datadir"
	"skep/host/internal/store/cluster"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// TestRotatePhases: a rotation has a phase after the resealing, in which each host forgets the sizes that it
// remembers.
func TestRotatePhases(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Keyring: &keyring.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	own := chores{&Host{store: store}}
	for _, kind := range []string{datadir.ChoreRotate, datadir.ChoreReseal} {
		of := cluster.Chore{Kind: kind, Tenant: swarm.DefaultTenant}
		for phase := range 3 {
			last, err := own.Drive(t.Context(), of, phase)
			if err != nil || last != (phase == 2) {
				t.Errorf("phase %d of %s is the last: %v, %v", phase, kind, last, err)
			}
		}
	}
}
