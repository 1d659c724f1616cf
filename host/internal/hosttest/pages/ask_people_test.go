package pages_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestAskPeoplePage: the commands of the page go with its file, one after the other, and print
// what it shows.
func TestAskPeoplePage(t *testing.T) {
	t.Parallel()
	page, p := hosttest.ReadText(t, "../../../docs/ask-people.md"), install(t)
	_, rest, _ := strings.Cut(page, "```toml\n")
	text, _, _ := strings.Cut(rest, "```")
	h, _ := hosttest.StartText(t, strings.ReplaceAll(text, "bundled:script", "file:script.wasm"), nil)
	tried := 0
	for _, s := range consolesIn(page) {
		if strings.HasPrefix(s.command, "skep serve") {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "PATH="+filepath.Dir(p.path)+":$PATH; "+s.command)
		cmd.Env = append(p.env[:len(p.env):len(p.env)], "SKEP_URL="+h.URL(), "SKEP_TOKEN="+h.Key)
		if out, err := cmd.Output(); err != nil || s.output != "" && !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
		tried++
	}
	if tried != 5 {
		t.Errorf("%d commands", tried)
	}
}
