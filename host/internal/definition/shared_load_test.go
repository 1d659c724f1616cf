package definition

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// loadElsewhere writes a loaded definition to the store as another host does.
func (h *testLibrary) loadElsewhere(t *testing.T, by, text string) {
	t.Helper()
	l := sqlite.Loaded{Tenant: swarm.DefaultTenant, Swarm: "hive", At: time.Now(), By: by, Text: []byte(text)}
	d := sqlite.Definition{Tenant: swarm.DefaultTenant, Swarm: "hive", Digest: "of-" + by, Created: time.Now(), Body: []byte("{}")}
	if err := h.store.LoadDefinition(t.Context(), l, d); err != nil {
		t.Fatal(err)
	}
}

// wantInForce wants a definition of the network with a word to be in force, and stored under its digest; the file's
// own for no word.
func (h *testLibrary) wantInForce(t *testing.T, word string) {
	t.Helper()
	in := h.InForce(swarm.DefaultTenant)
	if (in.Origin == "network") != (word != "") || !strings.Contains(string(in.Definition), word) {
		t.Errorf("in force is %s by %q: %s; want %q", in.Origin, in.By, in.Definition, word)
	}
	def, served := h.swarm.Definition(swarm.DefaultTenant, "hive")
	if !served || def.Digest != in.Digest {
		t.Errorf("new tasks run on %s, in force is %s", def.Digest, in.Digest)
	}
	if word == "" {
		return
	}
	if _, err := h.store.Definition(t.Context(), swarm.DefaultTenant, "hive", in.Digest); err != nil {
		t.Errorf("the definition in force is not stored: %v", err)
	}
}

// TestRefresh: what another host has loaded or unloaded is in force once this one has read it, and stored though a
// sweep of a third one has dropped it. What is not covered gives way to the file's own, what cannot be read changes
// nothing.
func TestRefresh(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	refresh := func(want string, wantErr error) {
		t.Helper()
		if err := h.Refresh(t.Context()); !errors.Is(err, wantErr) {
			t.Errorf("Refresh() = %v, want %v", err, wantErr)
		}
		h.wantInForce(t, want)
	}
	refresh("", nil)
	h.loadElsewhere(t, "ada", string(described("first")))
	h.wantInForce(t, "")
	refresh("first", nil)
	h.loadElsewhere(t, "bob", string(described("second")))
	refresh("second", nil)
	refresh("second", nil)

	h.loadElsewhere(t, "eve", "no JSON")
	refresh("second", errNoJSON)
	h.loadElsewhere(t, "ada", string(described("third")))
	h.Library.store = unreadStore{h.store}
	refresh("second", errOutage)
	h.Library.store = h.store
	refresh("third", nil)

	h.loadElsewhere(t, "eve", strings.Replace(string(described("wider")), `"boss":{"source":"file:script.wasm"`, `"boss":{"source":"file:other.wasm"`, 1))
	refresh("", nil)
	if err := h.loadDescribed(t, "own"); err != nil {
		t.Fatal(err)
	}
	refresh("own", nil)
	if err := h.store.UnloadDefinition(t.Context(), swarm.DefaultTenant, "hive"); err != nil {
		t.Fatal(err)
	}
	refresh("", nil)
}

// goneDefinitions has dropped each definition that it is asked for.
type goneDefinitions struct{ Store }

func (s goneDefinitions) Definition(ctx context.Context, tenant, name, digest string) (sqlite.Definition, error) {
	if err := s.DropDefinition(ctx, tenant, name, digest); err != nil {
		return sqlite.Definition{}, err
	}
	return s.Store.Definition(ctx, tenant, name, digest)
}

// TestRefreshSwept: a definition that a sweep has dropped before this host has read it is stored again: a host that
// takes over its tasks asks for it by its digest.
func TestRefreshSwept(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	h.loadElsewhere(t, "ada", string(described("first")))
	h.Library.store = goneDefinitions{h.store}
	if err := h.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Library.store = h.store
	h.wantInForce(t, "first")
}
