package wasm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"skep/host/internal/pathcheck"
	"skep/host/internal/turn"
)

// The fallback is what test binaries use, so it must follow go.mod.
func TestWazeroVersionIsThatOfGoMod(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`github\.com/tetratelabs/wazero (\S+)`).FindSubmatch(mod)
	if found == nil || string(found[1]) != wazeroVersion {
		t.Errorf("wazeroVersion is %s, go.mod has %s", wazeroVersion, found)
	}
}

// noChild fails whatever would have to be compiled.
var noChild = ChildCompiler{Command: []string{"/nonexistent"}}

// filled makes a cache with one module in it, and says where. body comes before
// the end of its turn.
func filled(t *testing.T, body ...[]byte) (dir, entries string, wasm []byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "cache")
	wasm = newBuilder().agent("", append(body, ok)...)
	e := withChild(t, dir, ChildCompiler{})
	if _, err := e.Load(t.Context(), Source{Name: "a", Wasm: wasm}); err != nil {
		t.Fatal(err)
	}
	return dir, e.cache.entries, wasm
}

// files gives what a cache has: code and marks.
func files(t *testing.T, entries string) (code, marks []string) {
	t.Helper()
	all, err := os.ReadDir(entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if path := filepath.Join(entries, d.Name()); strings.HasPrefix(d.Name(), "compiled-") {
			marks = append(marks, path)
		} else {
			code = append(code, path)
		}
	}
	return code, marks
}

// What is not as it was compiled is not used: a child compiles it again.
func TestEntriesAreChecked(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, code, mark string) error{
		"no code":         func(_ *testing.T, code, _ string) error { return os.Remove(code) },
		"no mark":         func(_ *testing.T, _, mark string) error { return os.Remove(mark) },
		"code cut off":    func(_ *testing.T, code, _ string) error { return os.Truncate(code, 100) },
		"an empty mark":   func(_ *testing.T, _, mark string) error { return os.Truncate(mark, 0) },
		"a mark astray":   func(_ *testing.T, _, mark string) error { return os.WriteFile(mark, []byte("../../x 1 00\n"), 0o600) },
		"code for others": func(_ *testing.T, code, _ string) error { return os.Chmod(code, 0o666) },
		"mark for others": func(_ *testing.T, _, mark string) error { return os.Chmod(mark, 0o662) },
		"another's code": func(t *testing.T, code, _ string) error {
			_, other, _ := filled(t, i32c(1), drop)
			from, _ := files(t, other)
			return os.Rename(from[0], code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, entries, wasm := filled(t)
			if _, err := withChild(t, dir, noChild).Load(t.Context(), Source{Name: "a", Wasm: wasm}); err != nil {
				t.Fatalf("before: %v", err)
			}
			code, marks := files(t, entries)
			if len(code) != 1 || len(marks) != 1 {
				t.Fatalf("code %v, marks %v", code, marks)
			}
			if err := spoil(t, code[0], marks[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := withChild(t, dir, noChild).Load(t.Context(), Source{Name: "a", Wasm: wasm}); err == nil {
				t.Error("it is used, or compiled in this process")
			}
			if _, err := withChild(t, dir, ChildCompiler{}).Load(t.Context(), Source{Name: "a", Wasm: wasm}); err != nil {
				t.Errorf("compiled again: %v", err)
			}
			if _, err := withChild(t, dir, noChild).Load(t.Context(), Source{Name: "a", Wasm: wasm}); err != nil {
				t.Errorf("after that: %v", err)
			}
		})
	}
}

// Trusted modules are compiled here, and their code is checked all the same.
func TestTrustedEntriesAreChecked(t *testing.T) {
	t.Parallel()
	dir, entries, wasm := filled(t)
	code, _ := files(t, entries)
	if err := os.Truncate(code[0], 100); err != nil {
		t.Fatal(err)
	}
	m, err := withChild(t, dir, noChild).Load(t.Context(), Source{Name: "a", Wasm: wasm, Trusted: true})
	if err != nil {
		t.Fatal(err)
	}
	if res := play(t, m, turn.Turn{}); res.Exit != nil {
		t.Error(res.Exit)
	}
}

// Every directory counts, when the cache is opened and whenever it is used.
func TestCacheDirectoriesAreGuarded(t *testing.T) {
	t.Parallel()
	dir, entries, wasm := filled(t)
	open := withChild(t, dir, ChildCompiler{})
	for _, d := range []string{dir, filepath.Dir(entries), entries} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
		var weak *pathcheck.Error
		_, err := New(t.Context(), Options{CacheDir: dir})
		if !errors.As(err, &weak) || !strings.Contains(err.Error(), "run chmod go-w "+d) {
			t.Errorf("%s is open, New: %v", d, err)
		}
		_, err = open.Load(t.Context(), Source{Name: "a", Wasm: wasm})
		if !errors.As(err, &weak) || !strings.Contains(err.Error(), "run chmod go-w "+d) {
			t.Errorf("%s is open, Load: %v", d, err)
		}
		if err := os.Chmod(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open.Load(t.Context(), Source{Name: "a", Wasm: wasm}); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// A cache that cannot take the code is no fault of the module.
func TestCacheFault(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{false, true} {
		dir, entries, wasm := filled(t)
		code, _ := files(t, entries)
		if err := errors.Join(os.Remove(code[0]), os.Mkdir(code[0], 0o700)); err != nil {
			t.Fatal(err)
		}
		_, err := withChild(t, dir, ChildCompiler{}).Load(t.Context(), Source{Name: "a", Wasm: wasm, Trusted: trusted})
		var fault *CompileError
		var refused *turn.LoadError
		if !errors.As(err, &fault) || errors.As(err, &refused) || !strings.Contains(err.Error(), "the compile cache is "+filepath.Dir(entries)) {
			t.Errorf("trusted %v: %v", trusted, err)
		}
	}
}

// Without a directory the child has one that is gone afterwards.
func TestTemporaryCache(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	stranger := Source{Name: "a", Wasm: newBuilder().agent("", ok)}
	e, err := New(t.Context(), Options{Child: &noChild})
	if err != nil {
		t.Fatal(err)
	}
	var fault *CompileError
	if _, err := e.Load(t.Context(), stranger); !errors.As(err, &fault) {
		t.Errorf("a stranger's module without its compiler: %v", err)
	}
	e2, err := New(t.Context(), Options{Child: &ChildCompiler{Command: []string{os.Args[0], childArg}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e2.Load(t.Context(), stranger); err != nil {
		t.Errorf("a stranger's module: %v", err)
	}
	if err := errors.Join(e.Close(context.Background()), e2.Close(context.Background())); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(tmp, "missing"))
	if _, err := New(t.Context(), Options{Child: &noChild}); err == nil || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("without any directory: %v", err)
	}
	if _, err := New(t.Context(), Options{CacheDir: filepath.Join(tmp, "cache"), Child: &noChild}); err != nil {
		t.Errorf("a cache needs no directory for temporary files: %v", err)
	}
}

// What killed processes have left is removed, what others work in is not.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir, entries, _ := filled(t)
	old, fresh := filepath.Join(filepath.Dir(entries), stagePrefix+"old"), filepath.Join(filepath.Dir(entries), stagePrefix+"new")
	long := time.Now().Add(-2 * stageMaxAge)
	if err := errors.Join(os.Mkdir(old, 0o700), os.Mkdir(fresh, 0o700), os.Chtimes(old, long, long)); err != nil {
		t.Fatal(err)
	}
	withChild(t, dir, noChild)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the new one: %v", err)
	}
}

func TestCompiled(t *testing.T) {
	t.Parallel()
	dir, entries, _ := filled(t)
	c := &cache{entries: entries}
	_, marks := files(t, entries)
	metered := []byte("no module")
	if Compiled(dir, metered) || Compiled("", metered) {
		t.Error("a module is there that never was")
	}
	if err := os.Rename(marks[0], c.markPath(metered)); err != nil {
		t.Fatal(err)
	}
	if !Compiled(dir, metered) {
		t.Error("a module is not there")
	}
}

// Code is for a processor with all that this one can do.
func TestCacheVersionNamesTheProcessor(t *testing.T) {
	t.Parallel()
	if v := cacheVersion(); !regexp.MustCompile(`-[0-9a-z]+-[0-9a-f]{8}$`).MatchString(v) || !strings.HasSuffix(v, processor()) {
		t.Error(v)
	}
}
