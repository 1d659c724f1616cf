package wasm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/pathcheck"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// A file is refused as admission refuses bytes, and not read for it.
func TestReadModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.wasm")
	if err := errors.Join(os.WriteFile(file, []byte("bytes"), 0o600), os.Truncate(file, 100<<30)); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func(string, string, binary.Caps) ([]byte, error){ReadModule, ReadAnyModule} {
		_, err := read("big", file, binary.DefaultCaps())
		var refused *turn.LoadError
		if !errors.As(err, &refused) || refused.Step != turn.StepAdmit || refused.Key != "limits.module.size" || refused.Name != "big" ||
			!strings.Contains(err.Error(), "size is 107374182400, at most 16777216") || !strings.Contains(err.Error(), "[limits.module] size") {
			t.Errorf("100 GiB: %v", err)
		}
		_, err = read("d", dir, binary.DefaultCaps())
		if !errors.As(err, &refused) || refused.Step != turn.StepRead || !strings.Contains(err.Error(), "it is a directory") {
			t.Errorf("a directory: %v", err)
		}
		if _, err = read("n", filepath.Join(dir, "none"), binary.DefaultCaps()); !errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*turn.LoadError)) {
			t.Errorf("no file: %v", err)
		}
	}
	if err := errors.Join(os.Truncate(file, 5), os.Chmod(file, 0o666)); err != nil {
		t.Fatal(err)
	}
	var weak *pathcheck.Error
	if _, err := ReadModule("a", file, binary.DefaultCaps()); !errors.As(err, &weak) {
		t.Errorf("a file for all: %v", err)
	}
	if raw, err := ReadAnyModule("a", file, binary.DefaultCaps()); err != nil || string(raw) != "bytes" {
		t.Errorf("%q, %v", raw, err)
	}
}
