package definition

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/definition/config"
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
	refresh("second", nil)
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

// spokenLog keeps the messages of a log.
type spokenLog struct {
	slog.Handler
	mu       sync.Mutex
	messages []string
}

func (l *spokenLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *spokenLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages = append(l.messages, r.Message)
	return nil
}

// count counts the messages with a text.
func (l *spokenLog) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.messages {
		if strings.Contains(m, text) {
			n++
		}
	}
	return n
}

func newSpokenLibrary(t *testing.T) (*testLibrary, *spokenLog) {
	t.Helper()
	spoken := &spokenLog{Handler: slog.DiscardHandler}
	h, _ := newTestLibrary(t, func(cfg *config.Config, o *LoaderOptions, _ func() (*config.Config, error)) *config.Config {
		o.Logger = slog.New(spoken)
		return cfg
	})
	return h, spoken
}

// damagedStore reads loaded definitions as damaged.
type damagedStore struct {
	Store
	damage error
}

func (s damagedStore) Loaded(ctx context.Context) ([]sqlite.Loaded, error) {
	list, err := s.Store.Loaded(ctx)
	list = slices.Clone(list)
	for i := range list {
		list[i].Text, list[i].Damaged = nil, s.damage
	}
	return list, err
}

// TestRefreshWarnsOnce: a stored definition that cannot be read, and one that the file does not cover, is logged
// once, however often it is read: each change of any tenant's has all read again. The next one is logged again. What
// cannot be read is read again with each sweep: its key may be readable then.
func TestRefreshWarnsOnce(t *testing.T) {
	t.Parallel()
	h, spoken := newSpokenLibrary(t)
	refresh := func(unread, uncovered int) {
		t.Helper()
		for range 3 {
			if err := h.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := spoken.count("cannot be read"); got != unread {
			t.Errorf("%d lines that a definition cannot be read, want %d", got, unread)
		}
		if got := spoken.count("is not covered by the file"); got != uncovered {
			t.Errorf("%d lines that a definition is not covered, want %d", got, uncovered)
		}
	}
	h.loadElsewhere(t, "eve", "no JSON")
	refresh(1, 0)
	h.loadElsewhere(t, "eve", "no JSON, again")
	refresh(2, 0)
	wider := strings.Replace(string(described("wider")), `"boss":{"source":"file:script.wasm"`, `"boss":{"source":"file:other.wasm"`, 1)
	h.loadElsewhere(t, "eve", wider)
	refresh(2, 1)
	h.loadElsewhere(t, "eve", wider)
	refresh(2, 2)

	h.loadElsewhere(t, "ada", string(described("first")))
	h.Library.store = damagedStore{h.store, errNoJSON}
	refresh(3, 2)
	h.wantInForce(t, "")
	h.Library.store = h.store
	if err := h.rereadUnused(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantInForce(t, "first")
	refresh(3, 2)
}

// TestChangeLockHeedsContext: what waits for a change of a definition ends with its context: a host that is fenced
// ends though the change waits for the store.
func TestChangeLockHeedsContext(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	if err := h.change.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer h.change.Unlock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, definition := h.Definition(ended, swarm.DefaultTenant, "hive", "of-ada")
	_, load := h.Load(ended, swarm.DefaultTenant, "ada", described("first"))
	_, reload := h.Reload(ended)
	for name, err := range map[string]error{
		"Refresh": h.Refresh(ended), "sweep": h.sweep(ended), "Definition": definition, "Load": load, "Reload": reload,
		"Unload": h.Unload(ended, swarm.DefaultTenant), "Prepare": h.Prepare(ended, nil), "ForgetErased": h.resetErased(ended, swarm.DefaultTenant),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
