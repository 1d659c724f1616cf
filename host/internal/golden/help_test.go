package golden_test

import (
	"fmt"
	"strings"
	"testing"
)

// The help of every command, found by what the shell's completion offers.
func TestHelp(t *testing.T) {
	t.Parallel()
	s := shell{t, t.TempDir()}
	var b strings.Builder
	s.helpBelow(&b, nil)
	if n := strings.Count(b.String(), "\n$ "); n < 30 {
		t.Errorf("only %d commands were found", n)
	}
	golden(t, "help.txt", b.String())
}

func (s shell) helpBelow(b *strings.Builder, path []string) {
	s.t.Helper()
	code, text, notes := s.run(append(path[:len(path):len(path)], "--help")...)
	if code != 0 || notes != "" {
		s.t.Errorf("%v --help: exit code %d, %s", path, code, notes)
	}
	fmt.Fprintf(b, "\n$ %s --help\n%s", strings.Join(append([]string{"skep"}, path...), " "), text)
	if len(path) > 0 && path[0] == "help" {
		return // which completes with all commands again
	}
	_, offered, _ := s.run(append(append([]string{"__complete"}, path...), "")...)
	for line := range strings.Lines(offered) {
		name, about, described := strings.Cut(strings.TrimSpace(line), "\t")
		if described && about != "" {
			s.helpBelow(b, append(path[:len(path):len(path)], name))
		}
	}
}
