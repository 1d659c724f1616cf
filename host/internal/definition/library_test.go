package definition

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/quarantine"
	"skep/host/internal/schema"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

const sweptSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
comm_targets = ["old"]
enable_entrypoint = true
can_complete_tasks = true
actions = ["confirm"]
[agents.old]
source = "bundled:calculator"
comm_targets = ["boss"]
[actions.confirm]
source = "human"
description = "a person confirms"
parameters = { type = "object" }
`

// testLibrary is a library with its store and a runtime that runs.
type testLibrary struct {
	*Library
	cfg   *config.Config
	store *sqlite.Store
}

// newTestLibrary opens a library on a file that write changes. Change changes the
// loader's options and the configuration, which reread reads again.
func newTestLibrary(t *testing.T, change ...func(cfg *config.Config, o *LoaderOptions, reread func() (*config.Config, error)) *config.Config) (_ *testLibrary, write func(text string)) {
	t.Helper()
	dir := t.TempDir()
	write = func(text string) {
		t.Helper()
		for name, content := range map[string][]byte{"swarm.toml": []byte(text), "script.wasm": guests.Bytes(t, "plugins/script")} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func() (*config.Config, error) {
		return config.Load(filepath.Join(dir, "swarm.toml"), config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
	}
	write(sweptSwarm)
	cfg, err := read()
	if err != nil {
		t.Fatal(err)
	}
	opt := LoaderOptions{DataDir: t.TempDir(), CacheDir: guests.CacheDir(t), Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		cfg = c(cfg, &opt, read)
	}
	return openTestLibrary(t, cfg, opt, read), write
}

func openTestLibrary(t *testing.T, cfg *config.Config, lo LoaderOptions, reread func() (*config.Config, error)) *testLibrary {
	t.Helper()
	store, err := sqlite.Open(t.Context(), lo.DataDir, sqlite.Options{Logger: lo.Logger, Keyring: &keyring.Options{}, Weight: Weights(cfg)})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, store)
	if lo.Secret, err = store.Secret(t.Context()); err != nil {
		t.Fatal(err)
	}
	loader, err := NewLoader(t.Context(), cfg, lo)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, loader)
	q, err := quarantine.Open(t.Context(), store, filepath.Join(lo.DataDir, "quarantine.json"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), cfg, Options{Store: store, Loader: loader, Quarantine: q, Reread: reread, Logger: lo.Logger})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l)
	l.Attach(runSwarm(t, cfg, store, l))
	return &testLibrary{Library: l, cfg: cfg, store: store}
}

func closeAtEnd(t *testing.T, c io.Closer) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error("Close:", err)
		}
	})
}

// runSwarm runs a runtime until the test ends.
func runSwarm(t *testing.T, cfg *config.Config, store *sqlite.Store, l *Library) *swarm.Runtime {
	t.Helper()
	tools, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	rt, err := swarm.New(t.Context(), store, l.Executor(), swarm.NoForwarder{}, tools, l.All(), swarm.Options{
		Tenants: swarm.NewTenantSet(Tenants(cfg)), Logger: l.log, Quarantine: l.Quarantine(), Library: l,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, cfg.Server.ShutdownGrace) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})
	return rt
}

// paused begins a task that waits for a person.
func (h *testLibrary) paused(t *testing.T) swarm.TaskKey {
	t.Helper()
	alice := swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"}
	r, err := h.swarm.Submit(t.Context(), swarm.Post{Principal: alice, Swarm: "hive", Door: "test", Type: mail.Request, Subject: "s", Body: `[["confirm",{}]]`})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := h.swarm.Wait(t.Context(), r); err != nil || a.State != swarm.StatePaused {
		t.Fatalf("%+v, %v", a, err)
	}
	return r.Task
}

// eventually waits for something that happens soon.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never:", what)
		}
	}
}
