package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
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
		{"[tenants", "[limits]\nagent_rest = \"2m\"\n[tenants", `limit limits.agent_rest changed "1m" "2m"`},
		{"[tenants", "[limits]\nagent_rest = \"5s\"\n[tenants", `limit limits.agent_rest changed widened "1m" "5s"`},
		{"[tenants", "[limits]\nagent_rest_after = 0\n[tenants", `limit limits.agent_rest_after changed widened "5" "unlimited"`},
		{"[tenants", "[limits]\nprocess_idle = 0\n[tenants", `limit limits.process_idle changed widened restart "10m" "unlimited"`},
		{"the secret", "another", `secret key changed {"value":"[secret]"} {"value":"[secret]"}`},
		{"hosts = [\"https://a.example\"]", "hosts = [\"https://a.example\", \"https://c.example\"]",
			`secret key changed widened {"hosts":["https://a.example"]} {"hosts":["https://a.example","https://c.example"]}`},
		{"tasks = 5", "tasks = 6", `limit tenants.acme.tasks changed widened "5" "6"`},
		{"tasks = 5", "tasks = 4", `limit tenants.acme.tasks changed "5" "4"`},
		{"tasks = 5", "", `limit tenants.acme.tasks changed widened "5" "unlimited"`},
		{"tasks = 5", "tasks = 5\nweight = 2", `limit tenants.acme.weight changed widened restart "1" "2"`},
		{"tasks = 5", "tasks = 5\n[tenants.default]\nusd_per_day = 0.5", `limit tenants.default.usd_per_day changed "unlimited" "0.5"`},
		{"tasks = 5", "tasks = 5\n[tenants.globex]\ntasks = 1", `tenant globex added widened restart null {"definitions":64,"memory":"0","messages_per_day":0,"queue":0,"storage":"0","tasks":1,"tokens_per_day":0,"turns":0,"turns_per_second":0,"usd_per_day":0,"weight":1}`},
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

const withACP = before + `
[gateways.acp]
[gateways.acp.partners.depot]
ids = ["depot"]
`

const gateways = withACP + `
[gateways.a2a]
[gateways.a2a.partners.shop]
url = "https://shop.example"
agents = ["math"]
auth_token = "the token"
`

// Partners and what is exposed change by reload, the rest of a gateway by a restart; what
// lets more in, or reaches further, is wider.
func TestCompareGateways(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"[gateways.a2a]\n", "[gateways.a2a]\nhold = \"40s\"\n", `gateway a2a changed restart {"hold":"30s"} {"hold":"40s"}`},
		{"[gateways.a2a]\n", "[gateways.a2a]\nadmit = [\"x\"]\nstranger_tenant = \"acme\"\n",
			`gateway a2a changed widened restart {"admit":[],"stranger_tenant":"guests"} {"admit":["x"],"stranger_tenant":"acme"}`},
		{"[gateways.a2a]\n", "[gateways.a2a]\nrate_limit.requests = 5\nv03 = false\n",
			`gateway a2a changed restart {"rate_limit":{"per":"1m0s","requests":600},"v03":true} {"rate_limit":{"per":"1m0s","requests":5},"v03":false}`},
		{"[gateways.a2a]\n", "[gateways.mcp]\n[gateways.a2a]\n", `gateway mcp added widened restart null {"admit":[],"asks":256,"behind_proxy":false,"hold":"30s","keep":"24h0m0s","keep_raw":false,"max_body":"1MiB","max_depth":64,"profile":"default","rate_limit":{"per":"1m0s","requests":600},"session_idle":"10m0s","sessions":256,"stranger_tenant":"guests"}`},
		{"[gateways.a2a.partners.shop]", "[gateways.a2a.partners.desk]\n[gateways.a2a.partners.shop]", `partner a2a.desk added widened null {"agents":[],"allow_private":false,"api_key":null,"auth_token":null,"ca":"","card":"","certificate":"","certificates":[],"give_up":"30s","hmac_key":null,"ids":[],"key":"","keys":[],"may":["ask"],"retry_in_doubt":true,"tenant":"default","timeout":"1m0s","url":""}`},
		{"the token", "another", `partner a2a.shop changed {"auth_token":"[secret]"} {"auth_token":"[secret]"}`},
		{`ids = ["depot"]`, `ids = ["depot*"]`, `partner acp.depot changed widened {"ids":["depot"]} {"ids":["depot*"]}`},
		{`agents = ["math"]`, `agents = ["math", "boss"]`, `partner a2a.shop changed widened {"agents":["math"]} {"agents":["math","boss"]}`},
		{`agents = ["math"]`, ``, `partner a2a.shop changed widened {"agents":["math"]} {"agents":[]}`},
		{`agents = ["math"]`, `agents = ["boss"]`, `partner a2a.shop changed widened {"agents":["math"]} {"agents":["boss"]}`},
		{`auth_token =`, "may = [\"ask\", \"tell\"]\nauth_token =", `partner a2a.shop changed widened {"may":["ask"]} {"may":["ask","tell"]}`},
		{`auth_token =`, "may = []\nauth_token =", `partner a2a.shop changed {"may":["ask"]} {"may":[]}`},
		{`auth_token =`, "allow_private = true\nauth_token =", `partner a2a.shop changed widened {"allow_private":false} {"allow_private":true}`},
		{`auth_token =`, "timeout = \"2m\"\ncard = \"https://shop.example/card\"\nauth_token =", `partner a2a.shop changed widened {"card":"","timeout":"1m0s"} {"card":"https://shop.example/card","timeout":"2m0s"}`},
		{`auth_token =`, "timeout = \"2m\"\nauth_token =", `partner a2a.shop changed {"timeout":"1m0s"} {"timeout":"2m0s"}`},
		{"[agents.math]\n", "[agents.math]\nexpose = [\"a2a\"]\n", `agent math changed widened {"expose":[]} {"expose":["a2a"]}`},
	} {
		after := strings.Replace(gateways, c.from, c.to, 1)
		var got []string
		for _, one := range Compare(parse(t, gateways), parse(t, after), slices.Contains[[]string]) {
			got = append(got, written(t, one))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%q for %q:\n%s", c.to, c.from, diff)
		}
	}
	without := Compare(parse(t, gateways), parse(t, withACP), slices.Contains[[]string])
	if len(without) != 2 || without[0].Kind != "gateway" || !without[0].Restart || without[0].Widened || without[1].Widened {
		t.Errorf("without the gateway: %+v", without)
	}
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
	is.Auth.JWT.Role, is.Auth.JWT.Keys = "user", `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`
	is.Auth.Keys = []config.AuthKey{{ID: "ann"}}
	var text strings.Builder
	for _, c := range Compare(was, is, slices.Contains[[]string]) {
		text.WriteString(written(t, c) + "\n")
	}
	for _, want := range []string{
		`{"cache_write_usd_per_mtok":1}`, `"env":{"PLACE":"[secret]"}`,
		`{"cert":"cert.pem","client_auth":"require","min_version":"1.2"}`, `"keys":"[secret]"`, `"role":"user"`, `"key":"[secret]"`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is not in\n%s", want, &text)
		}
	}
}

// What a changed file of declarations changes is shown, though swarm.toml is as it was.
func TestCompareDeclarations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "change.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	declared := func(field string) *config.Config {
		t.Helper()
		text := `enum MessageType { REQUEST, RESPONSE, INFORM, QUERY, ACKNOWLEDGE, ERROR }
type Message = {
  header: {
    version: String, sender: String, receiver: String, type: MessageType, id: String, timestamp: String, content_type: String,
    reply_to: String?, conversation_id: String?, ` + field + `
  },
  body: String
}`
		if err := os.WriteFile(filepath.Join(dir, "acme.acp"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file := before + "[gateways.acp]\ndsl = \"file:acme.acp\"\n"
		c, err := config.Parse("swarm.toml", []byte(file), dir, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	changes := Compare(declared("x_order: Int?, x_note: String?"), declared("x_order: Long, x_color: String?"), nil)
	raw, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"kind":"gateway","name":"acp","change":"changed","widened":false,"restart":true,` +
		`"before":{"declares Header.x_color":null,"declares Header.x_note":"String?","declares Header.x_order":"Int?"},` +
		`"after":{"declares Header.x_color":"String?","declares Header.x_note":null,"declares Header.x_order":"Long"}}]`
	if string(raw) != want {
		t.Errorf("got %s\nwant %s", raw, want)
	}
}
