package wasm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// marked is a hidden state by which a test sees that a prepared module is used.
const marked = "it was prepared"

// changeCached changes the prepared module in a cache, which is there once it is loaded.
func changeCached(t *testing.T, e *Engine, wasm []byte, change func(*preparedFile)) (path string) {
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
	file := preparedFile{Program: e.cache.program, Caps: e.caps, Module: *kept}
	change(&file)
	if err := e.cache.writePrepared(m.Digest(), file); err != nil {
		t.Fatal(err)
	}
	return e.cache.preparedPath(m.Digest())
}

// A module is admitted and metered once by a program with the same caps. What another
// program prepared, or is damaged, or can be written by others, is not used.
func TestPreparedModulesAreChecked(t *testing.T) {
	t.Parallel()
	nothing := func(string) error { return nil }
	for name, c := range map[string]struct {
		change func(*preparedFile)
		spoil  func(path string) error
		used   bool
	}{
		"as it was":         {func(*preparedFile) {}, nothing, true},
		"of another":        {func(k *preparedFile) { k.Program = "other" }, nothing, false},
		"with other caps":   {func(k *preparedFile) { k.Caps.Imports++ }, nothing, false},
		"cut off":           {func(*preparedFile) {}, func(path string) error { return os.Truncate(path, 300) }, false},
		"empty":             {func(*preparedFile) {}, func(path string) error { return os.Truncate(path, 0) }, false},
		"gone":              {func(*preparedFile) {}, os.Remove, false},
		"open to others":    {func(*preparedFile) {}, func(path string) error { return os.Chmod(path, 0o666) }, false},
		"a changed byte":    {func(*preparedFile) {}, changeLastByte, false},
		"more behind it":    {func(*preparedFile) {}, func(path string) error { return os.Truncate(path, 100_000) }, false},
		"a directory there": {func(*preparedFile) {}, func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _, wasm := filled(t)
			path := changeCached(t, withChild(t, dir, noChild), wasm, c.change)
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

// All of a prepared module comes back: a field that is left out here would be lost in each start.
func TestPreparedModuleComesBack(t *testing.T) {
	t.Parallel()
	want := &preparedModule{
		Metered: []byte("code"), Data: []binary.Segment{{Index: 1, Offset: 2, Bytes: []byte("a")}, {Index: 3, Offset: 4, Bytes: []byte("bc")}},
		HiddenState: "a reason", MinMemory: 5, MaxMemory: 6, Overhead: 7, MutableGlobals: 8, Descriptors: [][]byte{[]byte("{}")}, IsProgram: true,
	}
	for i := range reflect.TypeFor[preparedModule]().NumField() {
		if reflect.ValueOf(*want).Field(i).IsZero() {
			t.Errorf("the test sets no %s", reflect.TypeFor[preparedModule]().Field(i).Name)
		}
	}
	e := withChild(t, filepath.Join(t.TempDir(), "cache"), noChild)
	e.cache.savePrepared("digest", e.caps, want)
	if got := e.cache.findPrepared("digest", e.caps); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A program is named by its content where the system shows it; elsewhere no module is taken as prepared.
func TestProgramID(t *testing.T) {
	t.Parallel()
	if id := programID(); (len(id) >= 2*minBuildID) != (runtime.GOOS == "linux") {
		t.Errorf("%q on %s", id, runtime.GOOS)
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
func TestRefusedModuleIsNotPrepared(t *testing.T) {
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
