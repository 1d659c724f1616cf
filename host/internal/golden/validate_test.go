package golden_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"skep/host/internal/guests"
)

// newWide is a shell in the directory of a swarm that sets everything.
func newWide(t *testing.T) shell {
	t.Helper()
	s := newShell(t, "wide")
	s.copy(guests.Program(t, "testguests/conform"), "native")
	for _, program := range []string{"native", "server.sh"} {
		if err := os.Chmod(s.file(program), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// What validate prints: the settings of a file that sets every one, and of one that
// sets none; the faults of a file that has them all; modules that are refused.
func TestValidate(t *testing.T) {
	t.Parallel()
	wide, faulty := newWide(t), newShell(t, "faulty")
	for _, c := range []struct {
		name string
		code int
		in   shell
		args []string
	}{
		{"explain_wide", 0, wide, []string{"-c", wide.file("swarm.toml"), "--explain"}},
		{"explain_small", 0, wide, []string{"-c", wide.file("small.toml"), "--explain"}},
		{"faults", 3, faulty, []string{"-c", faulty.file("swarm.toml")}},
		{"refused", 3, faulty, []string{"-c", faulty.file("refused.toml")}},
	} {
		for _, form := range []string{"text", "json"} {
			code, stdout, stderr := c.in.run(append([]string{"validate", "-o", form}, c.args...)...)
			if code != c.code {
				t.Errorf("%s: exit code %d, want %d", c.name, code, c.code)
			}
			golden(t, filepath.Join("validate", c.name+"."+form), fmt.Sprintf("%s-- stderr --\n%s", stdout, stderr))
		}
	}
}
