package definition

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func putModule(t *testing.T, dir ModuleDir, digest, text string) {
	t.Helper()
	if err := os.WriteFile(dir.path(digest), []byte(text), 0o400); err != nil {
		t.Fatal(err)
	}
}

func wantModules(t *testing.T, dir ModuleDir, want map[string]string) {
	t.Helper()
	list, err := os.ReadDir(string(dir))
	if err != nil || len(list) != len(want) {
		t.Errorf("%d files, %v, want %d", len(list), err, len(want))
	}
	for digest, text := range want {
		if got, err := os.ReadFile(dir.path(digest)); string(got) != text || err != nil {
			t.Errorf("module %s is %q, %v, want %q", digest, got, err, text)
		}
	}
}

// What is whole is copied, what is there is left alone, and what is no module, or
// not the one its name says, is left out.
func TestModuleDirCopyTo(t *testing.T) {
	t.Parallel()
	from, to := ModuleDir(t.TempDir()), ModuleDir(filepath.Join(t.TempDir(), "modules"))
	if err := (from + "/none").CopyTo(t.Context(), to); err != nil {
		t.Error(err)
	}
	if err := from.CopyTo(t.Context(), to); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(string(to)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory for no modules: %v", err)
	}
	whole, there, damaged, link := digestOf([]byte("whole")), digestOf([]byte("there")), digestOf([]byte("damaged")), digestOf([]byte("link"))
	putModule(t, from, whole, "whole")
	putModule(t, from, there, "there")
	putModule(t, from, damaged, "another")
	for _, err := range []error{
		os.Symlink(from.path(whole), from.path(link)),
		os.WriteFile(filepath.Join(string(from), "notes.txt"), nil, 0o600),
		os.WriteFile(filepath.Join(string(from), "x.wasm"), nil, 0o600),
		os.Mkdir(string(to), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	putModule(t, to, there, "as it was")
	err := from.CopyTo(t.Context(), to)
	for _, text := range []string{from.path(damaged) + " is damaged", from.path(link) + " is not a regular file"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("CopyTo() = %v, want it to say %q", err, text)
		}
	}
	wantModules(t, to, map[string]string{whole: "whole", there: "as it was"})
}

func TestModuleDirCopyToEnds(t *testing.T) {
	t.Parallel()
	from, to := ModuleDir(t.TempDir()), ModuleDir(filepath.Join(t.TempDir(), "modules"))
	putModule(t, from, digestOf([]byte("whole")), "whole")
	gone := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := from.CopyTo(ctx, to); !errors.Is(err, gone) {
		t.Errorf("CopyTo() = %v", err)
	}
	if err := from.CopyTo(t.Context(), from+"/none/modules"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("CopyTo to no directory = %v", err)
	}
	if err := from.copyModule(to, digestOf([]byte("dropped"))); err != nil {
		t.Errorf("a module that was dropped: %v", err)
	}
}
