package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestGatewaysPage: the commands of the page on gateways do with its file what it says.
func TestGatewaysPage(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/gateways.md"
	p, dir := install(t), t.TempDir()
	_, text, _ := strings.Cut(hosttest.ReadText(t, page), "```toml\n")
	text, _, _ = strings.Cut(text, "```")
	if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.path, filepath.Join(dir, "skep")); err != nil {
		t.Fatal(err)
	}
	all := consoleOf(t, page, "Check and limit it")
	if len(all) != 6 {
		t.Fatalf("the page has %d commands", len(all))
	}
	vars := ""
	for _, s := range all {
		if strings.HasPrefix(s.command, "export ") {
			vars += s.command + "\n"
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vars+s.command)
		cmd.Dir, cmd.Env = dir, append(p.env, "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.Output(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
	}
}
