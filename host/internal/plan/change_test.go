package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/config"
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
		{"[tenants", "[peers.depot]\nbase_url = \"https://d.example\"\n[tenants", `peer depot added widened null {"allow_private":false,"auth_token":null,"base_url":"https://d.example","give_up":"30s","legacy_body_token":false,"metadata":"{}","public":false,"verify_key":""}`},
		{`kv = "agent"`, `kv = "task"`, `grant boss.kv changed "agent" "task"`},
		{`kv = "agent", `, ``, `grant boss.kv removed "agent" null`},
		{`["https://a.example"], s`, `["https://a.example", "https://b.example"], s`, `grant boss.http changed widened ["https://a.example"] ["https://a.example","https://b.example"]`},
		{`secrets = ["key"]`, `secrets = []`, `grant boss.secrets removed ["key"] null`},
		{`secrets = ["key"]`, `secrets = ["key"], retry_in_doubt = false`, `grant boss.retry_in_doubt changed true false`},
		{"[secrets", "limits = { memory = \"1GiB\" }\n[secrets", `limit agents.math.limits.memory changed widened "64MiB" "1GiB"`},
		{"[secrets", "limits = { turn = \"1s\" }\n[secrets", `limit agents.math.limits.turn changed "10m" "1s"`},
		{"[tenants", "[limits]\ntask_messages = 0\n[tenants", `limit limits.task_messages changed widened "100" "unlimited"`},
		{"[tenants", "[limits]\nturns = 8\n[tenants", `limit limits.turns changed restart "64" "8"`},
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
