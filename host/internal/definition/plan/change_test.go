package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/definition/config"
)

const before = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
breakpoint_tools = ["task_complete"]
[agents.boss]
source = "file:change.go"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "agent", http = ["https://a.example"], secrets = ["key"] }
[agents.math]
source = "file:change.go"
comm_targets = ["boss"]
[secrets.key]
value = "the secret"
hosts = ["https://a.example"]
header = "X-Key"
[tenants.acme]
tasks = 5
`

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each kind of change, whether it allows more, and whether it takes a restart.
func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"schema", "# a comment\nschema", ""},
		{`breakpoint_tools = ["task_complete"]`, ``, `swarm breakpoint_tools changed widened ["task_complete"] []`},
		{`name = "hive"`, `name = "other"`, `swarm name changed restart "hive" "other"`},
		{"entrypoint = \"boss\"\n", "entrypoint = \"boss\"\npublic = true\n", `swarm public changed widened false true`},
		{"entrypoint = \"boss\"\n", "entrypoint = \"boss\"\nenable_interswarm = true\nallow_agent_discovery = true\n",
			"swarm enable_interswarm changed widened false true\nswarm allow_agent_discovery changed widened false true"},
		{"[tenants", "[peers.depot]\nbase_url = \"https://d.example\"\n[tenants", `peer depot added widened null {"allow_private":false,"auth_token":null,"base_url":"https://d.example","ca_file":"","client_cert":"","client_key":"","give_up":"30s","legacy_body_token":false,"metadata":"{}","public":false,"verify_key":""}`},
		{"[tenants", "[mcp.web]\nurl = \"https://a.example/mcp\"\nauth_token = \"t\"\n[tenants", `mcp web added widened null {"allow_private":false,"auth_token":"[secret]","command":[],"env":{},"idle":"5m0s","max_result":"1MiB","pins":"web.mcp.json","timeout":"30s","trusted":false,"url":"https://a.example/mcp"}`},
		{`kv = "agent"`, `kv = "task"`, `grant boss.kv changed "agent" "task"`},
		{`kv = "agent", `, ``, `grant boss.kv removed "agent" null`},
		{`["https://a.example"], s`, `["https://a.example", "https://b.example"], s`, `grant boss.http changed widened ["https://a.example"] ["https://a.example","https://b.example"]`},
		{`secrets = ["key"]`, `secrets = []`, `grant boss.secrets removed ["key"] null`},
		{`secrets = ["key"]`, `secrets = ["key"], retry_in_doubt = false`, `grant boss.retry_in_doubt changed true false`},
		{"[secrets", "limits = { memory = \"1GiB\" }\n[secrets", `limit agents.math.limits.memory changed widened "64MiB" "1GiB"`},
		{"[secrets", "limits = { turn = \"1s\" }\n[secrets", `limit agents.math.limits.turn changed "10m" "1s"`},
		{"[tenants", "[limits]\ntask_messages = 0\n[tenants", `limit limits.task_messages changed widened "100" "unlimited"`},
		{"[tenants", "[limits]\nturns = 8\n[tenants", `limit limits.turns changed restart "64" "8"`},
		{"[tenants", "[limits]\nprocess_idle = 0\n[tenants", `limit limits.process_idle changed widened restart "10m" "unlimited"`},
		{"the secret", "another", `secret key changed {"value":"[secret]"} {"value":"[secret]"}`},
		{"hosts = [\"https://a.example\"]", "hosts = [\"https://a.example\", \"https://c.example\"]",
			`secret key changed widened {"hosts":["https://a.example"]} {"hosts":["https://a.example","https://c.example"]}`},
		{"tasks = 5", "tasks = 6", `tenant acme changed restart {"tasks":5} {"tasks":6}`},
		{"[tenants", "[server]\ndebug = true\n[tenants", `server debug changed restart false true`},
		{"[agents.math]\n", "[agents.math]\ncan_complete_tasks = true\n", `agent math changed widened {"can_complete_tasks":false} {"can_complete_tasks":true}`},
		{"comm_targets = [\"boss\"]", "comm_targets = [\"boss\"]\nparams = { key = 1 }", `agent math changed {"params":"{}"} {"params":"{\"key\":1}"}`},
	} {
		after := strings.Replace(before, c.from, c.to, 1)
		var got []string
		for _, one := range Compare(parse(t, before), parse(t, after), slices.Contains[[]string]) {
			got = append(got, written(t, one))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%q for %q:\n%s", c.to, c.from, diff)
		}
	}
}

func written(t *testing.T, c Change) string {
	t.Helper()
	text := c.Kind + " " + c.Name + " " + c.Change
	if c.Widened {
		text += " widened"
	}
	if c.Restart {
		text += " restart"
	}
	for _, v := range []any{c.Before, c.After} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		text += " " + string(raw)
	}
	return text
}

// What runs or is reached for an MCP server is wider when it is another; how long it
// has is not. A pin that changes is.
func TestCompareServers(t *testing.T) {
	t.Parallel()
	base := config.MCP{Name: "n", Command: []string{"/bin/a"}, Trusted: true, Env: []config.EnvVar{{Name: "A", Value: "x"}}}
	for name, c := range map[string]struct {
		change func(*config.MCP)
		want   bool
	}{
		"command": {func(m *config.MCP) { m.Command = []string{"/bin/b"} }, true},
		"args":    {func(m *config.MCP) { m.Command = []string{"/bin/a", "-x"} }, true},
		"env":     {func(m *config.MCP) { m.Env = []config.EnvVar{{Name: "A", Value: "y"}} }, true},
		"url":     {func(m *config.MCP) { m.Command, m.URL = nil, "https://x.example" }, true},
		"private": {func(m *config.MCP) { m.AllowPrivate = true }, true},
		"idle":    {func(m *config.MCP) { m.Idle = 1 }, false},
		"token":   {func(m *config.MCP) { m.AuthToken = "t" }, false},
	} {
		was, is := parse(t, before), parse(t, before)
		other := base
		c.change(&other)
		was.MCP, is.MCP = []config.MCP{base}, []config.MCP{other}
		got := Compare(was, is, slices.Contains[[]string])
		if len(got) != 1 || got[0].Kind != "mcp" || got[0].Widened != c.want || got[0].Restart {
			t.Errorf("%s: %+v", name, got)
		}
	}
	was, is := parse(t, before), parse(t, before)
	action := config.Action{Name: "a", Source: config.Source{Kind: config.SourceMCP, Ref: "n/a"}, SHA256: "1"}
	was.Actions = []config.Action{action}
	action.SHA256 = "2"
	is.Actions = []config.Action{action}
	if got := Compare(was, is, slices.Contains[[]string]); len(got) != 1 || !got[0].Widened {
		t.Errorf("%+v", got)
	}
}

// A change is shown under the keys of the file.
func TestChangesHaveTheFilesKeys(t *testing.T) {
	t.Parallel()
	was, is := parse(t, before), parse(t, before)
	was.Models, is.Models = []config.Model{{Name: "m"}}, []config.Model{{Name: "m", WritePrice: 1, KeyVar: "KEY"}}
	is.MCP = []config.MCP{{Name: "n", Env: []config.EnvVar{{Name: "PLACE", Value: "x", Hidden: true}}}}
	is.Server.TLS = config.TLS{TLS12: true, RequireClient: true}
	is.Server.TLS.Cert = "cert.pem"
	is.Auth.JWT.Role = "user"
	is.Auth.Keys = []config.AuthKey{{ID: "ann"}}
	var text strings.Builder
	for _, c := range Compare(was, is, slices.Contains[[]string]) {
		text.WriteString(written(t, c) + "\n")
	}
	for _, want := range []string{
		`{"cache_write_usd_per_mtok":1}`, `"env":{"PLACE":"[secret]"}`,
		`{"cert":"cert.pem","client_auth":"require","min_version":"1.2"}`, `{"role":"user"}`, `"key":"[secret]"`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is not in\n%s", want, &text)
		}
	}
}
