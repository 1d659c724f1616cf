package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/abi"
	"skep/host"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// Params that a module cannot mean are refused before anything runs, each at its
// line.
func TestParamsFitTheModule(t *testing.T) {
	t.Parallel()
	guests.Bytes(t, "plugins/llm")
	dir := t.TempDir()
	wrong := strings.Replace(llmSwarm, `params = { system = "You answer customers.", corrections = 0 }`,
		"params = { sistem = \"You answer customers.\", corrections = 9,\n  tools = { inclde = [\"help\"] }, ops = [\"kv_get\", \"rm\"], max_rounds = \"3\" }", 1)
	for name, text := range map[string]string{"swarm.toml": wrong, "rules.toml": llmRules} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "swarm.toml")
	cfg, err := config.Load(file, config.Options{BundleDir: hosttest.Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Options{Config: cfg, DataDir: t.TempDir(), CacheDir: guests.CacheDir(t), Listen: "127.0.0.1:0", AdminListen: "off"})
	if err == nil {
		_ = h.Close()
		t.Fatal("the host starts")
	}
	for _, want := range []string{
		`swarm.toml:11:12: agents.lead.params.sistem is not a known key (did you mean "system"?)`,
		`swarm.toml:11:60: agents.lead.params.corrections must be at most 5`,
		`swarm.toml:12:13: agents.lead.params.tools.inclde is not a known key (did you mean "include"?)`,
		`swarm.toml:12:51: agents.lead.params.ops[1] must be one of "kv_get"`,
		`swarm.toml:12:71: agents.lead.params.max_rounds must be a number, not a string`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in\n%v", want, err)
		}
	}
}

// Params that name what the agent does not have are refused at the name.
func TestParamsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	const shape = `{"properties":{"model":{"type":"string","default":"default","x-skep":"model"},"second":{"type":"string","x-skep":"model"},` +
		`"ops":{"type":"array","items":{"type":"string","x-skep":"op"}},` +
		`"tools":{"type":"object","properties":{"include":{"type":"array","items":{"type":"string","x-skep":"tool"}}}}}}`
	for name, c := range map[string]struct{ allow, params, want string }{
		"all there":       {`llm = ["default", "cheap"], kv = "task"`, `second = "cheap", ops = ["kv_get", "timer_set"], tools = { include = ["kv_get", "help"] }`, ""},
		"no second":       {`llm = ["default"]`, `second = ""`, ""},
		"no default":      {`llm = ["cheap"]`, `ops = []`, `swarm.toml:10:1: agents.a.params.model is not set and means the model "default", which [agents.a] allow.llm does not grant; it grants "cheap"`},
		"an ungranted":    {`llm = ["default"]`, `model = "cheap"`, `swarm.toml:10:20: agents.a.params.model names the model "cheap", which [agents.a] allow.llm does not grant; it grants "default"`},
		"a wrong second":  {`llm = ["default"]`, `second = "nope"`, `agents.a.params.second names the model "nope"`},
		"no kv":           {`llm = ["default"]`, `ops = ["timer_set", "kv_get"]`, `agents.a.params.ops[1] names kv_get, which needs a grant; add to [agents.a]: allow = { kv = "agent" }`},
		"no http":         {`llm = ["default"]`, `ops = ["http_fetch"]`, `names http_fetch, which needs a grant; add to [agents.a]: allow = { http = ["https://…"] }`},
		"another form":    {`llm = ["default"]`, `ops = ["kv.get"]`, `names the operation "kv.get", which there is not`},
		"an unknown op":   {`llm = ["default"]`, `ops = ["rm"]`, `names the operation "rm", which there is not`},
		"a wrong tool":    {`llm = ["default"]`, `tools = { include = ["hlep"] }`, `agents.a.params.tools.include[0] names the tool "hlep", which the agent does not have; it has send_request`},
		"no op as a tool": {`llm = ["default"]`, `tools = { include = ["kv_get"] }`, `names the tool "kv_get"`},
	} {
		cfg, err := config.Parse("swarm.toml", []byte("schema = 1\n[swarm]\nname = \"s\"\nentrypoint = \"a\"\n[agents.a]\nsource = \"file:params_test.go\"\n"+
			"enable_entrypoint = true\ncan_complete_tasks = true\nallow = { "+c.allow+" }\nparams = { "+c.params+" }\n"+
			"[models.default]\nprovider = \"script\"\ncassette = \"params_test.go\"\n[models.cheap]\nprovider = \"script\"\ncassette = \"params_test.go\"\n"), ".", config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := abi.Descriptor{Name: "m", Agents: []abi.AgentDescriptor{{Name: "x", Params: []byte(shape)}}}
		faults := definition.AgentFaults(cfg, cfg.Agents[0], described{d: d})
		if (len(faults) == 0) != (c.want == "") || !strings.Contains(faults.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, faults, c.want)
		}
	}
}

// described is a module of which only the descriptor matters.
type described struct {
	definition.Module
	d abi.Descriptor
}

func (m described) Descriptor() *abi.Descriptor { return &m.d }
func (m described) MinMemory() int64            { return 0 }

// A module that plays several agents has params for each of them, and one that says
// nothing of params takes all.
func TestParamsOfModules(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("swarm.toml", []byte("schema = 1\n[swarm]\nname = \"s\"\nentrypoint = \"a\"\n[agents.a]\nsource = \"file:params_test.go\"\n"+
		"enable_entrypoint = true\ncan_complete_tasks = true\nparams = { unit = \"K\" }\n"), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plays := func(name, params string) abi.AgentDescriptor {
		return abi.AgentDescriptor{Name: name, Params: []byte(params)}
	}
	none, unit := `{"additionalProperties":false}`, `{"properties":{"unit":{"type":"string"}},"additionalProperties":false}`
	for name, c := range map[string]struct {
		agents []abi.AgentDescriptor
		want   string
	}{
		"nothing":        {nil, ""},
		"no schema":      {[]abi.AgentDescriptor{plays("x", "")}, ""},
		"the only one":   {[]abi.AgentDescriptor{plays("x", none)}, "swarm.toml:9:12: agents.a.params.unit is not a known key"},
		"fits":           {[]abi.AgentDescriptor{plays("x", unit)}, ""},
		"another's":      {[]abi.AgentDescriptor{plays("x", none), plays("y", none)}, ""},
		"its own":        {[]abi.AgentDescriptor{plays("x", unit), plays("a", none)}, "agents.a.params.unit is not a known key"},
		"missing":        {[]abi.AgentDescriptor{plays("a", `{"required":["scale"]}`)}, "swarm.toml:9:1: agents.a.params.scale is missing"},
		"another type":   {[]abi.AgentDescriptor{plays("a", `{"properties":{"unit":{"type":"integer"}}}`)}, "swarm.toml:9:19: agents.a.params.unit must be a number, not a string"},
		"in an array":    {[]abi.AgentDescriptor{plays("a", `{"type":"array"}`)}, `swarm.toml:6:10: the module m says of its params what cannot be checked: the schema must have "type": "object"`},
		"beyond a check": {[]abi.AgentDescriptor{plays("a", `{"$ref":"#/x"}`)}, "schema of params m at #/$ref: is not taken"},
	} {
		faults := definition.AgentFaults(cfg, cfg.Agents[0], described{d: abi.Descriptor{Name: "m", Agents: c.agents}})
		if (len(faults) == 0) != (c.want == "") || !strings.Contains(faults.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, faults, c.want)
		}
	}
}
