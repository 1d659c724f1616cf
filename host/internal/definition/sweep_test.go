package definition

import (
	"errors"
	"strings"
	"testing"

	"skep/host/internal/swarm"
)

// A host without a file says so.
func TestReloadWithoutFile(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	h.opt.Reread = nil
	if _, err := h.Plan(t.Context()); !errors.Is(err, swarm.ErrConflict) {
		t.Error(err)
	}
	if _, err := h.Reload(t.Context()); !errors.Is(err, swarm.ErrConflict) {
		t.Error(err)
	}
}

// What a file had goes with its last task, its modules too, and not before.
func TestSweepFollowsTasks(t *testing.T) {
	t.Parallel()
	h, write := newTestLibrary(t)
	task := h.paused(t)
	old := h.current().own
	write(strings.Replace(sweptSwarm, "[agents.old]\nsource = \"bundled:calculator\"", "[agents.old]\nsource = \"file:script.wasm\"", 1))
	if _, err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	digest := old.composition.Agents[1].SHA256
	kept := func() (bound, stored, used bool) {
		t.Helper()
		if err := h.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, bound = h.current().bound[old.digest]
		_, err := h.store.Definition(t.Context(), "", "hive", old.digest)
		h.opt.Loader.modules.mu.Lock()
		defer h.opt.Loader.modules.mu.Unlock()
		return bound, err == nil, h.opt.Loader.modules.used[digest]
	}
	if bound, stored, used := kept(); !bound || !stored || !used {
		t.Errorf("while its task is paused: %v %v %v", bound, stored, used)
	}
	if named, err := h.namedModules(t.Context()); err != nil || !named[digest] {
		t.Errorf("the module is not named: %v, %v", named, err)
	}
	if err := h.swarm.CancelTask(t.Context(), task, "alice"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all has gone with its last task", func() bool {
		bound, stored, used := kept()
		return !bound && !stored && !used
	})
}
