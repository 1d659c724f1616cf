package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// swarmOfTables comes before the tables of a page.
const swarmOfTables = `schema = 1
[swarm]
name = "hive"
entrypoint = "calc"
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
`

// TestAMPGatewayPage (M-090, M-092, M-094, M-097): the commands of the page on AMP go with its tables.
func TestAMPGatewayPage(t *testing.T) {
	t.Parallel()
	page := hosttest.ReadText(t, "../../../docs/amp.md")
	_, rest, _ := strings.Cut(page, "```toml\n")
	tables, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no tables")
	}
	agents, rest, _ := strings.Cut(tables, "[gateways.amp]")
	text := strings.Replace(swarmOfTables, "[[auth.keys]]", agents+"[[auth.keys]]", 1) + "[gateways.amp]" + rest
	text = strings.Replace(text, "[agents.calc]\n", "[agents.calc]\nsource = \"file:script.wasm\"\nenable_entrypoint = true\ncan_complete_tasks = true\n", 1)
	h, _ := hosttest.StartText(t, text, map[string]string{"ACME_AT_HIVE": "the-token-of-acme"})
	path := os.Getenv("PATH") + ":" + filepath.Join(guests.Root(), "host/internal/gateway/acp/gen/testdata/typescript/node_modules/.bin") + ":" + filepath.Join(guests.Root(), "bin/uampclients")
	for _, program := range []string{"curl", "python3", "tsc", "node", "grpcurl"} {
		hasProgram(t, program, path)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(guests.Root(), "sdk"), filepath.Join(dir, "sdk")); err != nil {
		t.Fatal(err)
	}
	all := consolesIn(page)
	if len(all) != 14 {
		t.Errorf("the page has %d commands", len(all))
	}
	for _, s := range all {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", s.command)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+path, "PYTHONDONTWRITEBYTECODE=1", "SKEP_URL="+h.URL(), "SKEP_TOKEN=the-token-of-acme")
		if out, err := cmd.CombinedOutput(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
	}
}
