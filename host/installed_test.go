package host_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/guests"
)

// installed is the program as an operator has it: the bundled modules beside it, and
// nothing of the tests' environment.
type installed struct {
	path string
	env  []string
}

func install(t *testing.T) *installed {
	t.Helper()
	guests.Bytes(t, "plugins/script") // builds all guests if it must
	path, home := program(t), t.TempDir()
	for from, to := range map[string]string{
		filepath.Join(guests.Root(), "bin", "plugins"): filepath.Join(filepath.Dir(path), "plugins"),
		guests.CacheDir(t): filepath.Join(home, "skep"),
	} {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	return &installed{path, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CACHE_HOME=" + home}}
}

// ran is what a command has left behind.
type ran struct {
	stdout, stderr string
	code           int
}

// run runs a command, with variables beside those that it has always.
func (p *installed) run(t *testing.T, stdin string, env []string, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.path, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(env, p.env...), strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}
