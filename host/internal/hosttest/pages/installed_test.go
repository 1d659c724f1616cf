package pages_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// installed is the program as an operator has it: the bundled modules beside it, and
// nothing of the tests' environment.
type installed struct {
	path string
	env  []string
}

func install(t *testing.T) *installed {
	t.Helper()
	path, home := hosttest.Program(t), hosttest.CacheHome(t)
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
