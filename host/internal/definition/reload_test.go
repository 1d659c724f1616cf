package definition

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/swarm"
)

// slowCompiler makes a compiler that says when it begins, waits, and fails.
func slowCompiler(t *testing.T) (command []string, begun <-chan struct{}, open func()) {
	t.Helper()
	dir := t.TempDir()
	begins, opens := filepath.Join(dir, "begins"), filepath.Join(dir, "opens")
	for _, pipe := range []string{begins, opens} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		if _, err := os.ReadFile(begins); err != nil {
			t.Error(err)
		}
	}()
	open = func() {
		if err := os.WriteFile(opens, []byte("\n"), 0); err != nil {
			t.Error(err)
		}
	}
	return []string{"/bin/sh", "-c", "echo > '" + begins + "'; read go < '" + opens + "'; exit 1", "sh"}, told, open
}

// A definition is loaded while a reload compiles, tasks are taken up and definitions
// swept.
func TestLoadWhileReloadCompiles(t *testing.T) {
	t.Parallel()
	command, begun, open := slowCompiler(t)
	bundled := strings.NewReplacer("file:script.wasm", "bundled:calculator")
	h, write := newTestLibrary(t, func(cfg *config.Config, o *LoaderOptions, reread func() (*config.Config, error)) *config.Config {
		// What the bundled modules need is compiled in this process.
		o.Compiler, o.CacheDir = command, t.TempDir()
		if err := os.WriteFile(filepath.Join(cfg.Dir, "swarm.toml"), []byte(bundled.Replace(sweptSwarm)), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := reread()
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	})
	file := h.InForce(swarm.DefaultTenant).Digest
	write(sweptSwarm)
	reloaded := make(chan error, 1)
	go func() {
		_, err := h.Reload(t.Context())
		reloaded <- err
	}()
	select {
	case <-begun:
	case err := <-reloaded:
		t.Fatal("nothing was compiled:", err)
	}
	text := bundled.Replace(string(described("meanwhile")))
	if _, err := h.Load(t.Context(), swarm.DefaultTenant, "ada", []byte(text)); err != nil {
		t.Error(err)
	}
	if _, err := h.Definition(t.Context(), swarm.DefaultTenant, "hive", file); err != nil {
		t.Error(err)
	}
	if err := h.sweep(t.Context()); err != nil {
		t.Error(err)
	}
	open()
	if err := <-reloaded; !errors.Is(err, swarm.ErrConflict) {
		t.Error(err)
	}
	if in := h.InForce(swarm.DefaultTenant); in.Origin != "network" {
		t.Errorf("in force is that of the %s", in.Origin)
	}
}

// What is loaded while a reload is under way is judged again by the new file.
func TestReloadJudgesWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	h, write := newTestLibrary(t)
	read := h.opt.Reread
	h.opt.Reread = func() (*config.Config, error) {
		defer func() {
			if err := h.loadDescribed(t, "meanwhile"); err != nil {
				t.Error(err)
			}
		}()
		return read()
	}
	write(strings.ReplaceAll(sweptSwarm, "file:script.wasm", "bundled:script"))
	if _, err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if in := h.InForce(swarm.DefaultTenant); in.Origin != "file" {
		t.Errorf("in force is that of the %s", in.Origin)
	}
	if loaded, err := h.store.Loaded(t.Context()); len(loaded) != 1 || err != nil {
		t.Errorf("%+v, %v", loaded, err)
	}
}

// A sweep leaves the modules of a file that is not in force yet, and closes them if
// it never is.
func TestSweepSparesWhatComes(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	other := append(slices.Clone(guests.Bytes(t, "plugins/script")), 0, 2, 1, 'x') // a section that says nothing
	path := filepath.Join(t.TempDir(), "other.wasm")
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := *h.cfg
	cfg.Agents = slices.Clone(cfg.Agents)
	cfg.Agents[0].Source.Path = path
	h.protectModules(map[string]string{"boss": digestOf(other)})
	modules, err := h.opt.Loader.Load(t.Context(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if modules["boss"].Digest() != digestOf(other) {
		t.Fatal("it is another module")
	}
	used := func() bool {
		t.Helper()
		if err := h.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.opt.Loader.modules.mu.Lock()
		defer h.opt.Loader.modules.mu.Unlock()
		return h.opt.Loader.modules.used[modules["boss"].Digest()]
	}
	if !used() {
		t.Error("a module that comes was closed")
	}
	if h.protectModules(nil); used() {
		t.Error("a module that did not come is still there")
	}
}

// A module that is written to between the plan and the load is not taken over.
func TestReloadRefusesAnotherModule(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	modules, err := h.opt.Loader.Load(t.Context(), h.cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := rereadFile{digests: map[string]string{"boss": "another", "old": modules["old"].Digest()}}
	if err := r.compareDigests(modules); err == nil || !strings.Contains(err.Error(), `the module of agent "boss" was written to`) {
		t.Error(err)
	}
}

// A module that cannot be read is named by what it is of.
func TestUnreadableModuleOfAction(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	cfg := *h.cfg
	cfg.Actions = append(slices.Clone(cfg.Actions), config.Action{
		Name: "price", Source: config.Source{Kind: config.SourceFile, Ref: "price.wasm", Path: filepath.Join(t.TempDir(), "price.wasm")},
	})
	if _, err := h.opt.Loader.Load(t.Context(), &cfg); err == nil || !strings.Contains(err.Error(), `action "price"`) {
		t.Error(err)
	}
}

// TestPartsOfProgram: hosts that have different programs at the path of an `exec:` source have different parts.
func TestPartsOfProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "worker")
	text := strings.Replace(sweptSwarm, `source = "bundled:calculator"`, fmt.Sprintf("source = %q\ntrusted = true", "exec:"+program), 1)
	h, write := newTestLibrary(t)
	write(text)
	partsWith := func(script string) map[string]string {
		t.Helper()
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := h.reread()
		if err != nil {
			t.Fatal(err)
		}
		return next.parts
	}
	one, same, other := partsWith("exit 0"), partsWith("exit 0"), partsWith("exit 1")
	if !maps.Equal(one, same) {
		t.Errorf("one program: %v and %v", one, same)
	}
	if one["agent old"] == other["agent old"] || one["agent boss"] != other["agent boss"] {
		t.Errorf("two programs: %v and %v", one, other)
	}
}
