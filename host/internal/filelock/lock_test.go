package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"skep/host/internal/filelock"
)

// open opens a file as a second process would.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := filelock.Open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// One has the exclusive lock, several have the shared one; what is locked can be read.
func TestLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	a, b, c := open(t, path), open(t, path), open(t, path)
	if _, err := a.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryExclusive(a); err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryExclusive(b); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	if raw, err := os.ReadFile(path); string(raw) != "text" {
		t.Errorf("read %q, %v", raw, err)
	}
	if err := errors.Join(filelock.Unlock(a), filelock.Shared(b), filelock.Shared(c)); err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryExclusive(a); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("beside shared locks: %v", err)
	}
	if err := errors.Join(filelock.Unlock(b), c.Close(), filelock.Exclusive(a)); err != nil {
		t.Errorf("after all others: %v", err)
	}
}

// A file that others have open and locked is renamed and truncated, as a log is.
func TestOpenAllowsRename(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	if _, err := f.WriteString("whole, torn"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(filelock.Exclusive(f), filelock.Truncate(f, 5), os.Rename(path, path+"-1")); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path + "-1"); string(raw) != "whole" {
		t.Errorf("it holds %q, %v", raw, err)
	}
}
