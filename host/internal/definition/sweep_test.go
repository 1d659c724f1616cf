package definition

import (
	"context"
	"errors"
	"strings"
	"testing"

	"skep/host/internal/store/sqlite"
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

// TestSweepBesideOthers: what other hosts may have in force stays stored: the definitions of a tenant that has
// another one there, all while a host runs another file or version, and what was in force here until a moment ago.
func TestSweepBesideOthers(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	alike := true
	h.opt.IsAlike = func() bool { return alike }
	sweep := func(tenants, files bool, when string) {
		t.Helper()
		if err := h.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for d, kept := range map[[2]string]bool{{swarm.DefaultTenant, "of-eve"}: tenants, {"", "before"}: files} {
			if _, err := h.store.Definition(t.Context(), d[0], "hive", d[1]); (err == nil) != kept || err != nil && !errors.Is(err, swarm.ErrNotFound) {
				t.Errorf("%s, definition %s: %v, want it kept: %v", when, d[1], err, kept)
			}
		}
	}
	settle := func() {
		for digest := range h.unwanted {
			h.unwanted[digest] = h.unwanted[digest].Add(-settleTime)
		}
	}
	h.loadElsewhere(t, "eve", strings.Replace(string(described("wider")), `"boss":{"source":"file:script.wasm"`, `"boss":{"source":"file:other.wasm"`, 1))
	if err := h.store.AddDefinition(t.Context(), sqlite.Definition{Swarm: "hive", Digest: "before", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	sweep(true, true, "at first")
	settle()
	alike = false
	sweep(true, true, "beside another version")
	alike = true
	sweep(true, false, "while eve's definition is in force elsewhere")
	if err := h.store.UnloadDefinition(t.Context(), swarm.DefaultTenant, "hive"); err != nil {
		t.Fatal(err)
	}
	sweep(false, false, "with nothing in force elsewhere")
}

// TestPersistDropped: where several hosts share the store, the operator's definition that another host's sweep has
// dropped is stored again: by a sweep, and before a host that has waited serves. A host alone writes nothing.
func TestPersistDropped(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	check := func(when string, persist func(context.Context) error, stored bool) {
		t.Helper()
		if err := h.store.DropDefinition(t.Context(), "", "hive", h.own.digest); err != nil {
			t.Fatal(err)
		}
		if err := persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.store.Definition(t.Context(), "", "hive", h.own.digest); (err == nil) != stored || err != nil && !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("%s: %v, want it stored: %v", when, err, stored)
		}
	}
	check("after the sweep of a host alone", h.sweep, false)
	h.opt.IsAlike = func() bool { return false }
	check("after a sweep beside others", h.sweep, true)
	check("after the wait", h.Persist, true)
}

// TestPersistDroppedLoaded: what a tenant has loaded is stored again, too, as hosts with another file have dropped it:
// they compose it otherwise. What was unloaded elsewhere since is not.
func TestPersistDroppedLoaded(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	if err := h.loadDescribed(t, "own"); err != nil {
		t.Fatal(err)
	}
	h.opt.IsAlike = func() bool { return false }
	digest := h.InForce(swarm.DefaultTenant).Digest
	check := func(when string, persist func(context.Context) error, stored bool) {
		t.Helper()
		if err := h.store.DropDefinition(t.Context(), swarm.DefaultTenant, "hive", digest); err != nil {
			t.Fatal(err)
		}
		if err := persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.store.Definition(t.Context(), swarm.DefaultTenant, "hive", digest); (err == nil) != stored || err != nil && !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("%s: %v, want it stored: %v", when, err, stored)
		}
	}
	check("after a sweep beside others", h.sweep, true)
	check("after the wait", h.Persist, true)
	if err := h.store.UnloadDefinition(t.Context(), swarm.DefaultTenant, "hive"); err != nil {
		t.Fatal(err)
	}
	check("when it was unloaded elsewhere", h.Persist, false)
}
