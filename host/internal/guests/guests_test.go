package guests_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skep/host/internal/guests"
)

func TestAllFindsTheBundledAgents(t *testing.T) {
	t.Parallel()
	all, err := guests.All(guests.Root())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, g := range all {
		found[g.Name] = true
		if shared := filepath.Join(guests.Root(), "plugins", "internal"); slices.Contains(g.Inputs, shared) != (g.Name == "plugins/tool" || g.Name == "plugins/knowledge" || g.Name == "plugins/workflow") {
			t.Errorf("%s is built from %v", g.Name, g.Inputs)
		}
	}
	for _, name := range []string{"plugins/script", "plugins/supervisor", "plugins/calculator", "plugins/analyst", "testguests/many"} {
		if !found[name] {
			t.Errorf("%s is not among %v", name, found)
		}
	}
}

func TestBytesAreAModule(t *testing.T) {
	t.Parallel()
	if wasm := guests.Bytes(t, "plugins/script"); !bytes.HasPrefix(wasm, []byte("\x00asm")) {
		t.Errorf("plugins/script begins with %q", wasm[:4])
	}
	if info, err := os.Stat(guests.CacheDir(t)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache is %v, %v", info, err)
	}
}

func TestDigestFollowsTheSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		d, err := guests.Guest{Name: "x", Dir: dir, Inputs: []string{dir}}.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write("main.go", "package main\n")
	first := digest()
	write("main_test.go", "package main\n")
	write("README.md", "text")
	if digest() != first {
		t.Error("a test or a text changed the digest")
	}
	write("main.go", "package main // changed\n")
	changed := digest()
	if changed == first {
		t.Error("a change of the source did not change the digest")
	}
	g := guests.Guest{Name: "x"}
	root := t.TempDir()
	if g.Fresh(root, changed) {
		t.Error("a guest that was never built is fresh")
	}
	if err := g.MarkBuilt(root, changed); err != nil || g.Built(root, changed) {
		t.Errorf("a guest without its file is built, %v", err)
	}
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.File(root), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !g.Built(root, changed) || g.Built(root, first) || g.Fresh(root, changed) {
		t.Error("a guest without compiled code is fresh, or not built")
	}
	if err := os.Remove(g.File(root)); err != nil {
		t.Fatal(err)
	}
	if err := g.MarkFresh(root, changed); err != nil || g.Fresh(root, changed) {
		t.Errorf("a guest without its file is fresh, %v", err)
	}
}
