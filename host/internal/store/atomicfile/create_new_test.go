package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"skep/host/internal/store/atomicfile"
	"skep/host/internal/store/durabletest"
)

// A new file lasts when it has its name, and one of several writers makes it.
func TestCreateNew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	durabletest.Trace(t, func() error { return atomicfile.CreateNew(path, 0o600, []byte("first")) }).Want(t, path)
	if err := atomicfile.CreateNew(path, 0o600, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	if raw, err := os.ReadFile(path); string(raw) != "first" {
		t.Errorf("it holds %q, %v", raw, err)
	}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if atomicfile.CreateNew(path+"2", 0o600, []byte("x")) == nil {
				made.Add(1)
			}
		})
	}
	all.Wait()
	list, err := os.ReadDir(filepath.Dir(path))
	if made.Load() != 1 || len(list) != 2 || err != nil {
		t.Errorf("%d writers made it, %v, %v", made.Load(), list, err)
	}
}
