package wasm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"skep/host/internal/turn"
)

// marked is a hidden state by which a test sees that a kept module is used.
const marked = "it was kept"

// keptIn changes the module that a cache keeps, which is there once it is loaded.
func keptIn(t *testing.T, e *Engine, wasm []byte, change func(*keptHead)) (path string) {
	t.Helper()
	m, err := e.Load(t.Context(), Source{Name: "a", Wasm: wasm})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := e.cache.readPrepared(m.Digest(), e.caps)
	if err != nil {
		t.Fatal(err)
	}
	kept.HiddenState = marked
	file := keptHead{Program: e.cache.program, Caps: e.caps, Module: *kept}
	change(&file)
	if err := e.cache.writePrepared(m.Digest(), file); err != nil {
		t.Fatal(err)
	}
	return e.cache.preparedPath(m.Digest())
}

// A module is admitted and metered once by a program with the same caps. What another
// program kept, or is damaged, or can be written by others, is not used.
func TestKeptModules(t *testing.T) {
	t.Parallel()
	nothing := func(string) error { return nil }
	for name, c := range map[string]struct {
		change func(*keptHead)
		spoil  func(path string) error
		used   bool
	}{
		"as it was":         {func(*keptHead) {}, nothing, true},
		"of another":        {func(k *keptHead) { k.Program = "other" }, nothing, false},
		"with other caps":   {func(k *keptHead) { k.Caps.Imports++ }, nothing, false},
		"cut off":           {func(*keptHead) {}, func(path string) error { return os.Truncate(path, 300) }, false},
		"empty":             {func(*keptHead) {}, func(path string) error { return os.Truncate(path, 0) }, false},
		"gone":              {func(*keptHead) {}, os.Remove, false},
		"open to others":    {func(*keptHead) {}, func(path string) error { return os.Chmod(path, 0o666) }, false},
		"a changed byte":    {func(*keptHead) {}, changeLastByte, false},
		"more behind it":    {func(*keptHead) {}, func(path string) error { return os.Truncate(path, 100_000) }, false},
		"a directory there": {func(*keptHead) {}, func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _, wasm := filled(t)
			path := keptIn(t, withChild(t, dir, noChild), wasm, c.change)
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			m, err := withChild(t, dir, noChild).Load(t.Context(), Source{Name: "a", Wasm: wasm})
			if err != nil {
				t.Fatal(err)
			}
			if used := m.NoImageReason() == marked; used != c.used {
				t.Errorf("used %v", used)
			}
			if res := play(t, m, turn.Turn{}); res.Exit != nil {
				t.Error(res.Exit)
			}
		})
	}
}

func changeLastByte(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	raw[len(raw)-1] ^= 1
	return os.WriteFile(path, raw, 0o600)
}

// A refused module leaves nothing, and stays refused.
func TestRefusedModuleIsNotKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	e := withChild(t, dir, noChild)
	for range 2 {
		if _, err := e.Load(t.Context(), Source{Name: "a", Wasm: newBuilder().bytes()}); err == nil {
			t.Fatal("it is loaded")
		}
	}
	if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
