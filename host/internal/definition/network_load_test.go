package definition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// described is a definition of a boss that asks people.
func described(text string) []byte {
	return fmt.Appendf(nil, `{"swarm":{"name":"hive","entrypoint":"boss","description":%q},
		"agents":{"boss":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true,"actions":["confirm"]}},
		"actions":{"confirm":{"source":"human","description":"a person confirms","parameters":{"type":"object"}}}}`, text)
}

func (h *testLibrary) loadDescribed(t *testing.T, text string) error {
	t.Helper()
	_, err := h.Load(t.Context(), swarm.DefaultTenant, "ada", described(text))
	return err
}

// countOwn counts the definitions that a host keeps of a tenant's own, and how many can
// be run.
func (h *testLibrary) countOwn(t *testing.T) (stored, bound int) {
	t.Helper()
	list, err := h.store.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(k sqlite.Definition) bool { return k.Tenant != swarm.DefaultTenant })
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(list), len(h.bound) - 1
}

func (h *testLibrary) setQuota(q config.Tenant) {
	q.Name = swarm.DefaultTenant
	h.file.Config.Tenants = []config.Tenant{q}
}

// A definition is charged to its tenant's storage, and one more is refused where that is
// used up.
func TestDefinitionsNeedStorage(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	h.setQuota(config.Tenant{Definitions: 64, Storage: 1})
	if err := h.loadDescribed(t, strings.Repeat("first", 1000)); err != nil {
		t.Fatal(err)
	}
	err := h.loadDescribed(t, "second")
	if !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "[tenants.default] storage") {
		t.Errorf("beyond the storage: %v", err)
	}
}

// The paused tasks of a tenant keep so many definitions and no more; unused ones
// do not count.
func TestDefinitionsAreBounded(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	h.setQuota(config.Tenant{Definitions: 2})
	for i := range 5 {
		if err := h.loadDescribed(t, fmt.Sprint(i)); err != nil {
			t.Fatal(i, err)
		}
	}
	first := h.paused(t)
	if err := h.loadDescribed(t, "second"); err != nil {
		t.Fatal(err)
	}
	h.paused(t)
	err := h.loadDescribed(t, "third")
	if !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "finish or cancel tasks of older ones") {
		t.Errorf("one too many: %v", err)
	}
	if in := h.InForce(swarm.DefaultTenant); !strings.Contains(string(in.Definition), `"second"`) {
		t.Errorf("in force is %s", in.Definition)
	}
	if stored, bound := h.countOwn(t); stored != 2 || bound != 2 {
		t.Errorf("%d definitions are stored, %d can be run", stored, bound)
	}
	for _, text := range []string{"second", "4"} {
		if err := h.loadDescribed(t, text); err != nil {
			t.Errorf("one that is there: %v", err)
		}
	}
	if err := h.swarm.CancelTask(t.Context(), first, "alice"); err != nil {
		t.Fatal(err)
	}
	if err := h.loadDescribed(t, "second"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool { return h.loadDescribed(t, "third") == nil })
	if stored, bound := h.countOwn(t); stored != 2 || bound != 2 {
		t.Errorf("%d definitions are stored, %d can be run", stored, bound)
	}
}

// What is loaded while its tenant is erased is there whole, in the store and in
// force, or not at all.
func TestEraseAndLoad(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	for i := range 20 {
		if err := h.loadDescribed(t, "before"); err != nil {
			t.Fatal(i, err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if err := h.Erase(t.Context(), swarm.DefaultTenant); err != nil {
				t.Error(i, err)
			}
		})
		both.Go(func() {
			if err := h.loadDescribed(t, fmt.Sprint(i)); err != nil && !errors.Is(err, swarm.ErrErasing) {
				t.Error(i, err)
			}
		})
		both.Wait()
		h.wantWhole(t)
	}
}

// wantWhole compares what is in force with what is in the store.
func (h *testLibrary) wantWhole(t *testing.T) {
	t.Helper()
	loaded, err := h.store.Loaded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := h.InForce(swarm.DefaultTenant)
	def, _ := h.swarm.Definition(swarm.DefaultTenant, "hive")
	if (in.Origin == "network") != (len(loaded) == 1) || def.Digest != in.Digest {
		t.Errorf("in force is %s, new tasks go by %s, and %d are loaded", in.Origin, def.Digest, len(loaded))
	}
	_, err = h.store.Definition(t.Context(), swarm.DefaultTenant, "hive", in.Digest)
	if in.Origin == "network" && err != nil || in.Origin == "file" && !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("in force is %s: %v", in.Origin, err)
	}
}

// watchedStore calls looked before it lists what is loaded.
type watchedStore struct {
	Store
	looked func()
}

func (s watchedStore) Loaded(ctx context.Context) ([]sqlite.Loaded, error) {
	s.looked()
	return s.Store.Loaded(ctx)
}

// A tenant that is being erased is served again when its files are gone and the operator's
// definition is in force: a task that begins before would run on what was erased.
func TestEraseEndsWithTheDefinition(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	if err := h.loadDescribed(t, "erased"); err != nil {
		t.Fatal(err)
	}
	h.paused(t)
	var posted error
	h.Library.store = watchedStore{h.store, func() {
		_, posted = h.swarm.Submit(t.Context(), swarm.Post{
			Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"}, Swarm: "hive", Door: "test", Type: mail.Request, Subject: "s", Body: "x",
		})
	}}
	if err := h.Erase(t.Context(), swarm.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(posted, swarm.ErrErasing) {
		t.Errorf("a post before the erasure ended: %v", posted)
	}
}

// unreadStore cannot list what is loaded.
type unreadStore struct{ Store }

func (unreadStore) Loaded(context.Context) ([]sqlite.Loaded, error) { return nil, errOutage }

// TestForgetErased: a tenant that another host has erased is given the operator's definition. While the store cannot
// be read, each tenant keeps its own.
func TestForgetErased(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	if err := h.loadDescribed(t, "kept"); err != nil {
		t.Fatal(err)
	}
	h.Library.store = unreadStore{h.store}
	if err := h.ForgetErased(t.Context()); !errors.Is(err, errOutage) {
		t.Errorf("while the store cannot be read: %v", err)
	}
	h.Library.store = h.store
	h.wantWhole(t)
	if err := h.ForgetErased(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantWhole(t)
	if err := h.store.UnloadDefinition(t.Context(), swarm.DefaultTenant, "hive"); err != nil {
		t.Fatal(err)
	}
	if err := h.ForgetErased(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantWhole(t)
}

// lateStore fails writes of what is loaded at their end, when they are durable, or before
// they begin.
type lateStore struct {
	Store
	durable bool
}

var errOutage = errors.New("input/output error")

func (s lateStore) LoadDefinition(ctx context.Context, l sqlite.Loaded, d sqlite.Definition) error {
	if s.durable {
		if err := s.Store.LoadDefinition(ctx, l, d); err != nil {
			return err
		}
	}
	return errOutage
}

func (s lateStore) UnloadDefinition(ctx context.Context, tenant, name string) error {
	if s.durable {
		if err := s.Store.UnloadDefinition(ctx, tenant, name); err != nil {
			return err
		}
	}
	return errOutage
}

// What the store has after a write that it reported as failed is in force: it would come in
// force at the next reload or start else, though its caller was told of a failure.
func TestLoadWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	for name, durable := range map[string]bool{"nothing is written": false, "it is written": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newTestLibrary(t)
			late := func(change func() error) {
				t.Helper()
				h.Library.store = lateStore{h.store, durable}
				err := change()
				h.Library.store = h.store
				if durable != (err == nil) || err != nil && !errors.Is(err, errOutage) {
					t.Errorf("the caller gets %v", err)
				}
				h.wantWhole(t)
			}
			late(func() error { return h.loadDescribed(t, "first") })
			if err := h.loadDescribed(t, "second"); err != nil {
				t.Fatal(err)
			}
			late(func() error { return h.loadDescribed(t, "third") })
			if in := h.InForce(swarm.DefaultTenant); strings.Contains(string(in.Definition), `"third"`) != durable {
				t.Errorf("in force is %s", in.Definition)
			}
			late(func() error { return h.Unload(t.Context(), swarm.DefaultTenant) })
		})
	}
}
