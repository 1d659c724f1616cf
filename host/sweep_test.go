package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/config"
	"skep/host/internal/guests"
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

// sweptHost is a host that runs on a file that write changes, with options as
// changed.
func sweptHost(t *testing.T, change ...func(*Options)) (h *Host, write func(text string)) {
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
	opt := Options{Config: cfg, DataDir: t.TempDir(), CacheDir: guests.CacheDir(t), Listen: "127.0.0.1:0", AdminListen: "off", Reread: read}
	for _, c := range change {
		c(&opt)
	}
	h, err = New(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})
	return h, write
}

// paused begins a task that waits for a person.
func (h *Host) paused(t *testing.T) swarm.TaskKey {
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

// A host without a file says so.
func TestReloadWithoutFile(t *testing.T) {
	t.Parallel()
	h, _ := sweptHost(t)
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
	h, write := sweptHost(t)
	task := h.paused(t)
	old := h.defs.current().own
	write(strings.Replace(sweptSwarm, "[agents.old]\nsource = \"bundled:calculator\"", "[agents.old]\nsource = \"file:script.wasm\"", 1))
	if _, err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	digest := old.x.Agents[1].SHA256
	kept := func() (bound, stored, used bool) {
		t.Helper()
		if err := h.defs.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, bound = h.defs.current().bound[old.digest]
		_, err := h.store.Definition(t.Context(), "", "hive", old.digest)
		h.kept.mu.Lock()
		defer h.kept.mu.Unlock()
		return bound, err == nil, h.kept.used[digest]
	}
	if bound, stored, used := kept(); !bound || !stored || !used {
		t.Errorf("while its task is paused: %v %v %v", bound, stored, used)
	}
	if named, err := h.defs.namedModules(t.Context()); err != nil || !named[digest] {
		t.Errorf("the module is not named: %v, %v", named, err)
	}
	if err := h.swarm.Cancel(t.Context(), task, "alice"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all has gone with its last task", func() bool {
		bound, stored, used := kept()
		return !bound && !stored && !used
	})
}

// eventually waits for something that happens soon.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never:", what)
		}
	}
}
