//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestACPImportedPipe: an import that is a pipe is refused, and not waited for.
func TestACPImportedPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "fleet.acp")
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe.acp"), 0o600), os.WriteFile(file, []byte(`import "pipe.acp"`), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := newShell(nil, "acp", "check", file)
	if code := Main(t.Context(), s.Env); code == exitOK || !strings.Contains(s.stdout.String()+s.stderr.String(), "fleet.acp:1:8: the file cannot be read: pipe.acp is not a regular file") {
		t.Errorf("exit code %d, %s%s", code, &s.stderr, &s.stdout)
	}
}
