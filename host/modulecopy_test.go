package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func putModule(t *testing.T, dir, digest, text string) {
	t.Helper()
	if err := os.WriteFile(modulePath(dir, digest), []byte(text), 0o400); err != nil {
		t.Fatal(err)
	}
}

func wantModules(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != len(want) {
		t.Errorf("%d files, %v, want %d", len(list), err, len(want))
	}
	for digest, text := range want {
		if got, err := os.ReadFile(modulePath(dir, digest)); string(got) != text || err != nil {
			t.Errorf("module %s is %q, %v, want %q", digest, got, err, text)
		}
	}
}

// What is whole is copied, what is there is left alone, and what is no module, or
// not the one its name says, is left out.
func TestCopyModules(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "modules")
	if err := copyModules(t.Context(), filepath.Join(from, "none"), to); err != nil {
		t.Error(err)
	}
	if err := copyModules(t.Context(), from, to); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory for no modules: %v", err)
	}
	whole, there, damaged, link := digestOf("whole"), digestOf("there"), digestOf("damaged"), digestOf("link")
	putModule(t, from, whole, "whole")
	putModule(t, from, there, "there")
	putModule(t, from, damaged, "another")
	for _, err := range []error{
		os.Symlink(modulePath(from, whole), modulePath(from, link)),
		os.WriteFile(filepath.Join(from, "notes.txt"), nil, 0o600),
		os.WriteFile(filepath.Join(from, "x.wasm"), nil, 0o600),
		os.Mkdir(to, 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	putModule(t, to, there, "as it was")
	err := copyModules(t.Context(), from, to)
	for _, text := range []string{modulePath(from, damaged) + " is damaged", modulePath(from, link) + " is not a regular file"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("copyModules() = %v, want it to say %q", err, text)
		}
	}
	wantModules(t, to, map[string]string{whole: "whole", there: "as it was"})
}

func TestCopyModulesEnds(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "modules")
	putModule(t, from, digestOf("whole"), "whole")
	gone := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := copyModules(ctx, from, to); !errors.Is(err, gone) {
		t.Errorf("copyModules() = %v", err)
	}
	if err := copyModules(t.Context(), from, filepath.Join(from, "none", "modules")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("copyModules to no directory = %v", err)
	}
	if err := copyModule(modulePath(from, digestOf("dropped")), modulePath(to, digestOf("dropped")), digestOf("dropped")); err != nil {
		t.Errorf("a module that was dropped: %v", err)
	}
}
