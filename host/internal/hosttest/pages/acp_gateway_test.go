package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// swarmOfACPPage comes before the tables of the page.
const swarmOfACPPage = `schema = 1
[swarm]
name = "hive"
entrypoint = "calc"
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
`

// afterStart begins what follows the page's first steps.
const afterStart = "The settings, with what else a file may have:"

// TestACPGatewayPageStart: the page's first file is whole, and the commands
// after it have the answers that it shows.
func TestACPGatewayPageStart(t *testing.T) {
	t.Parallel()
	start, _, found := strings.Cut(hosttest.ReadText(t, "../../../docs/gateway-acp.md"), afterStart)
	_, text, hasFile := strings.Cut(start, "```toml\n")
	text, _, _ = strings.Cut(text, "```")
	all := consolesIn(start)
	if !found || !hasFile || len(all) != 3 {
		t.Fatalf("the page has %d first commands", len(all))
	}
	hosttest.SystemProgram(t, "curl")
	p, file := install(t), filepath.Join(t.TempDir(), "swarm.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := "PATH=" + filepath.Dir(p.path) + ":$PATH; SKEP_URL=http://" + serveFor(t, file) + "\n" + all[0].command + "\n"
	for _, s := range all[1:] {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vars+s.command)
		cmd.Env = p.env
		if out, err := cmd.CombinedOutput(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
	}
}

// TestACPGatewayPage: the commands of the page on ACP go with its tables and
// its access list, over standard streams and over a broker.
func TestACPGatewayPage(t *testing.T) {
	t.Parallel()
	page, p := hosttest.ReadText(t, "../../../docs/gateway-acp.md"), install(t)
	_, page, _ = strings.Cut(page, afterStart) // TestACPGatewayPageStart has what is before
	fence := func(begin string) string {
		t.Helper()
		_, rest, found := strings.Cut(page, begin)
		text, _, _ := strings.Cut(rest, "```")
		if !found || text == "" {
			t.Fatalf("the page has no %q", begin)
		}
		return text
	}
	b := hosttest.StartMosquitto(t, "allow_anonymous true\nacl_file acl\n", map[string]string{"acl": fence("For Mosquitto:\n\n```\n")})
	tables, mqtt := fence("```toml\n"), fence("## MQTT\n\n```toml\n")
	before, rest, _ := strings.Cut(tables, "[gateways.acp.partners.acme]") // mqtt has it with topics
	_, keys, _ := strings.Cut(rest, "[[auth.keys]]")
	text := strings.NewReplacer(
		"[agents.calc]\n", "[agents.calc]\nsource = \"file:script.wasm\"\nenable_entrypoint = true\ncan_complete_tasks = true\n",
		"dsl =", "# dsl =", "mqtts://broker.example:8883", "mqtt://"+b.Addr,
	).Replace(swarmOfACPPage + before + mqtt + "[[auth.keys]]" + keys)
	h, _ := hosttest.StartText(t, text, map[string]string{"ACME_AT_HIVE": "the-token-of-acme", "BROKER_PASSWORD": "what-the-broker-takes"})
	op, err := client.New(client.Options{URL: h.URL(), Token: "a-key-of-the-operator"})
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	hosttest.Eventually(t, "the host is at the broker", func() bool {
		list, err := op.Gateways(t.Context(), "")
		return err == nil && len(list) == 1 && list[0].Healthy
	})
	host, port, _ := strings.Cut(b.Addr, ":")
	all := consolesIn(page)
	if len(all) != 4 {
		t.Errorf("the page has %d commands", len(all))
	}
	for _, s := range all {
		command := strings.ReplaceAll(s.command, "-h localhost", "-h "+host+" -p "+port)
		for _, name := range []string{"mosquitto_sub", "mosquitto_pub"} {
			if strings.HasPrefix(command, name+" ") {
				hosttest.SystemProgram(t, name)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "PATH="+filepath.Dir(p.path)+":$PATH; "+command)
		cmd.Env = append(p.env[:len(p.env):len(p.env)], "SKEP_URL="+h.URL(), "SKEP_TOKEN=the-token-of-acme")
		if out, err := cmd.CombinedOutput(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
	}
}
