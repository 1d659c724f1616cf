package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// Every command of the page on declarations goes, and prints what the page says, with
// the files that the page shows.
func TestACPPage(t *testing.T) {
	t.Parallel()
	page, p, dir := hosttest.ReadText(t, "../../../docs/acp.md"), install(t), t.TempDir()
	for file, fence := range map[string]string{"mail.acp": "```acp\n", "request.json": "```json\n", "read.py": "```python\n"} {
		_, rest, _ := strings.Cut(page, fence)
		text, _, _ := strings.Cut(rest, "```")
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil || text == "" {
			t.Fatal(file, err)
		}
	}
	path := filepath.Dir(p.path) + ":" + os.Getenv("PATH")
	hasProgram(t, "python3", path)
	all := consolesIn(page)
	for _, s := range all {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", s.command)
		cmd.Dir, cmd.Env = dir, append(p.env[:len(p.env):len(p.env)], "PATH="+path)
		if out, _ := cmd.CombinedOutput(); !s.matches(string(out)) { // some are meant to fail
			t.Errorf("$ %s\n%s\nthe page has\n%s", s.command, out, s.output)
		}
	}
	if len(all) != 11 {
		t.Errorf("%d commands", len(all))
	}
}
