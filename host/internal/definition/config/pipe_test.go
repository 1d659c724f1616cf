//go:build unix

package config_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/definition/config"
)

// A pipe in the place of the file is refused, and nothing waits for its writer.
func TestFileIsAPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "swarm.toml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "it is a pipe", "/dev/zero": "it is a device"} {
		if _, err := config.Load(path, config.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
