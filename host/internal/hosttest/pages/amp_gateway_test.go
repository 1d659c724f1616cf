package pages_test

import (
	"os/exec"
	"strings"
	"testing"

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

// TestAMPGatewayPage (M-090, M-092): the commands of the page on AMP go with its tables.
func TestAMPGatewayPage(t *testing.T) {
	t.Parallel()
	page := hosttest.ReadText(t, "../../../docs/gateway-amp.md")
	_, rest, _ := strings.Cut(page, "```toml\n")
	tables, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no tables")
	}
	agents, rest, _ := strings.Cut(tables, "[gateways.amp]")
	text := strings.Replace(swarmOfTables, "[[auth.keys]]", agents+"[[auth.keys]]", 1) + "[gateways.amp]" + rest
	text = strings.Replace(text, "[agents.calc]\n", "[agents.calc]\nsource = \"file:script.wasm\"\nenable_entrypoint = true\ncan_complete_tasks = true\n", 1)
	h, _ := hosttest.StartText(t, text, map[string]string{"ACME_AT_HIVE": "the-token-of-acme"})
	hosttest.SystemProgram(t, "curl")
	all := consolesIn(page)
	if len(all) != 8 {
		t.Errorf("the page has %d commands", len(all))
	}
	for _, s := range all {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", s.command)
		cmd.Env = append(cmd.Environ(), "SKEP_URL="+h.URL(), "SKEP_TOKEN=the-token-of-acme")
		if out, err := cmd.CombinedOutput(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
	}
}
