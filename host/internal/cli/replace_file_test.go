package cli

import (
	"path/filepath"
	"testing"

	"skep/host/internal/store/durabletest"
)

// What a command has written survives a power cut, in a directory that was there.
func TestReplacedFileLasts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	for _, text := range []string{"one", "two"} {
		durabletest.Trace(t, func() error { return replaceFile(path, []byte(text)) }).Want(t, path)
	}
}
