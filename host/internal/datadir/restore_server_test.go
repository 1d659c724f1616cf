package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"skep/host/internal/definition/config"
)

// TestRestoreToServer: a restore beside the store that the host uses is refused, and changes
// nothing.
func TestRestoreToServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "b")
	_, err := newData(t).Backup(t.Context(), file, true)
	mustDo(t, err)
	to := Data{Dir: filepath.Join(t.TempDir(), "data"), Store: config.Store{Driver: config.DriverPostgres}}
	if err := to.Restore(t.Context(), file); !errors.Is(err, errRestoreToServer) {
		t.Errorf("Restore() = %v", err)
	}
	if _, err := os.Stat(to.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a directory: %v", err)
	}
}
