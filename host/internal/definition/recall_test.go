package definition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// leavingStore ends the caller's context when a definition has been read.
type leavingStore struct {
	Store
	leave context.CancelFunc
}

func (s leavingStore) Definition(ctx context.Context, tenant, name, digest string) (sqlite.Definition, error) {
	d, err := s.Store.Definition(ctx, tenant, name, digest)
	if err == nil {
		s.leave()
	}
	return d, err
}

// An old definition is bound to its own modules or to none: neither a caller that leaves
// nor a file that cannot be read for a moment makes today's module run its tasks.
func TestRecallKeepsModules(t *testing.T) {
	t.Parallel()
	h, write := newTestLibrary(t)
	h.paused(t)
	old := h.current().own
	write(strings.Replace(sweptSwarm, "[agents.old]\nsource = \"bundled:calculator\"", "[agents.old]\nsource = \"file:script.wasm\"", 1))
	if _, err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	module := old.composition.Agents[1].SHA256
	delete(h.bound, old.digest) // as after a restart
	if err := h.opt.Loader.modules.closeUnused(t.Context(), map[string]bool{h.current().own.composition.Agents[0].SHA256: true}); err != nil {
		t.Fatal(err)
	}
	recall := func(ctx context.Context) (*swarm.Definition, error) {
		return h.Definition(ctx, swarm.DefaultTenant, "hive", old.digest)
	}

	leaving, leave := context.WithCancel(t.Context())
	real := h.store
	h.Library.store = leavingStore{real, leave}
	if _, err := recall(leaving); err == nil {
		t.Error("a caller that has left gets a definition")
	}
	h.Library.store = real

	path := h.opt.Loader.modules.dir.path(module)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(path, path+".aside"))
	must(os.Mkdir(path, 0o700))
	if _, err := recall(t.Context()); err == nil {
		t.Error("a module that cannot be read is taken for gone")
	}
	must(os.Remove(path))
	must(os.Rename(path+".aside", path))

	if _, err := recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.moduleOf(old.digest, "old"); got != module {
		t.Errorf("the old task runs on module %s, want its own, %s", got, module)
	}
}

// laterRows have every module as a later version keeps it, until later is false.
type laterRows struct {
	ModuleRows
	later atomic.Bool
}

func (r *laterRows) ReadModule(ctx context.Context, digest string, maxSize int64) ([]byte, error) {
	if r.later.Load() {
		return nil, fmt.Errorf("read module %s: %w", digest, sqlite.ErrLaterModule)
	}
	return r.ModuleRows.ReadModule(ctx, digest, maxSize)
}

// TestRecallLaterModule: a task whose module a later version has packed waits: it does not go on with today's module.
// It has its own once that can be read.
func TestRecallLaterModule(t *testing.T) {
	t.Parallel()
	rows := &laterRows{ModuleRows: newSharedModules(t, pgtest.Schema(t)).rows}
	h, write := newTestLibrary(t, func(cfg *config.Config, o *LoaderOptions, _ func() (*config.Config, error)) *config.Config {
		o.Rows = rows
		return cfg
	})
	h.paused(t)
	old := h.current().own
	module := old.composition.Agents[1].SHA256
	write(strings.Replace(sweptSwarm, `source = "bundled:calculator"`, `source = "file:script.wasm"`, 1))
	if _, err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(h.bound, old.digest) // as on a host that has taken the task over
	if err := os.Remove(h.opt.Loader.modules.dir.path(module)); err != nil {
		t.Fatal(err)
	}
	rows.later.Store(true)
	if _, err := h.Definition(t.Context(), swarm.DefaultTenant, "hive", old.digest); !errors.Is(err, sqlite.ErrLaterModule) || errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("of a later version: %v", err)
	}
	rows.later.Store(false)
	if _, err := h.Definition(t.Context(), swarm.DefaultTenant, "hive", old.digest); err != nil {
		t.Fatal(err)
	}
	if got := h.moduleOf(old.digest, "old"); got != module {
		t.Errorf("the task runs on module %s, want its own, %s", got, module)
	}
}
