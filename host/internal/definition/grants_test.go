package definition

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/definition/config"
)

func TestGranted(t *testing.T) {
	t.Parallel()
	allow := config.Allow{LLM: []string{"default"}, HTTP: []string{"https://a.example", "https://b.example"}, KV: "agent"}
	for _, tc := range []struct {
		key, value string
		want       bool
	}{
		{"llm", `["default"]`, true}, {"llm", `["large"]`, false}, {"llm", ``, true},
		{"http", `["https://b.example"]`, true}, {"http", `["https://a.example","https://c.example"]`, false}, {"http", `"https://a.example"`, true},
		{"http", `"GET https://a.example/v1"`, true}, {"http", `"https://*"`, false}, {"http", `"a.example"`, false},
		{"kv", `"task"`, true}, {"kv", `"agent"`, true}, {"kv", `"instance"`, false}, {"kv", ``, true},
		{"secrets", `["key"]`, false}, {"files", `["/"]`, false}, {"files", ``, false},
	} {
		r := abi.Request{Allow: tc.key, Value: json.RawMessage(tc.value), Reason: "because"}
		if got := granted(allow, r); got != tc.want {
			t.Errorf("%s %s: granted %v, want %v", tc.key, tc.value, got, tc.want)
		}
	}
	if granted(config.Allow{}, abi.Request{Allow: "kv"}) {
		t.Error("kv is granted by nothing")
	}
}

// TestMissingGrants wants every fault to show the line that would help.
func TestMissingGrants(t *testing.T) {
	t.Parallel()
	d := &abi.Descriptor{Name: "fetch", Version: "1.0.0", Requests: []abi.Request{
		{Allow: "http", Value: json.RawMessage(`["https://a.example"]`), Reason: "to read the weather"},
		{Allow: "kv", Reason: "to remember"},
		{Allow: "llm", Reason: "to think", Optional: true},
		{Allow: "gpu", Reason: "to shine"},
	}}
	cfg := &config.Config{File: "swarm.toml"}
	faults := missingGrants(cfg, agentGrantee(config.Agent{Name: "weather"}), d)
	want := []string{
		`the module fetch 1.0.0 needs to call https://a.example (to read the weather) and is not granted it; add to [agents.weather]: allow = { http = ["https://a.example"] }`,
		`the module fetch 1.0.0 needs to keep data (to remember) and is not granted it; add to [agents.weather]: allow = { kv = "agent" }`,
		`the module fetch 1.0.0 needs "gpu" (to shine), which this version of skep does not know`,
	}
	if len(faults) != len(want) {
		t.Fatalf("%d faults, want %d: %v", len(faults), len(want), faults)
	}
	for i, f := range faults {
		if f.Message != want[i] {
			t.Errorf("fault %d:\n%s\nwant:\n%s", i, f.Message, want[i])
		}
	}
}

// A module may ask for what its params name.
func TestRequestsFromParams(t *testing.T) {
	t.Parallel()
	d := &abi.Descriptor{Name: "wiki", Version: "1.0.0", Requests: []abi.Request{
		{Allow: "http", Value: json.RawMessage(`"GET {params.base}"`), Reason: "to read pages"},
	}}
	const base = `{"base":"https://wiki.example"}`
	for _, tc := range []struct{ params, grant, want string }{
		{base, "https://wiki.example", ""},
		{base, "https://a.example", `needs to call GET https://wiki.example (to read pages) and is not granted it; add to [agents.web]: allow = { http = ["GET {params.base}"] }`},
		{`{}`, "https://a.example", ""},
		{`{}`, "", `needs to call what the operator names (to read pages) and is not granted it; add to [agents.web]: allow = { http = ["GET {params.base}"] }`},
	} {
		a := config.Agent{Name: "web", Params: json.RawMessage(tc.params)}
		if tc.grant != "" {
			a.Allow.HTTP = []string{tc.grant}
		}
		faults := missingGrants(&config.Config{File: "swarm.toml"}, agentGrantee(a), d)
		if (len(faults) == 0) != (tc.want == "") || len(faults) > 0 && !strings.HasSuffix(faults[0].Message, tc.want) {
			t.Errorf("%s, granted %q: %v", tc.params, tc.grant, faults)
		}
	}
}

// TestScopeFromParams wants a fault to show the scope of kv that the params need.
func TestScopeFromParams(t *testing.T) {
	t.Parallel()
	d := &abi.Descriptor{Name: "knowledge", Version: "1.0.0", Requests: []abi.Request{
		{Allow: "kv", Value: json.RawMessage(`["agent", "{params.scope}"]`), Reason: "to keep the statements"},
	}}
	for _, tc := range []struct{ params, granted, want string }{
		{``, "agent", ""}, {`{}`, "instance", ""}, {`{"scope":"instance"}`, "instance", ""},
		{``, "", `allow = { kv = "agent" }`}, {`{}`, "task", `allow = { kv = "agent" }`},
		{`{"scope":"agent"}`, "task", `allow = { kv = "agent" }`}, {`{"scope":"instance"}`, "agent", `allow = { kv = "instance" }`},
	} {
		a := config.Agent{Name: "know", Params: json.RawMessage(tc.params), Allow: config.Allow{KV: tc.granted}}
		faults := missingGrants(&config.Config{File: "swarm.toml"}, agentGrantee(a), d)
		if (len(faults) == 0) != (tc.want == "") || len(faults) > 0 && !strings.HasSuffix(faults[0].Message, "add to [agents.know]: "+tc.want) {
			t.Errorf("%s, granted %q: %v", tc.params, tc.granted, faults)
		}
	}
}

// TestToolAgentWithoutActions wants an agent that would refuse each request to be a fault.
func TestToolAgentWithoutActions(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{File: "swarm.toml", Actions: []config.Action{{Name: "add"}}}
	a := config.Agent{Name: "tools", Source: config.Source{Kind: config.SourceBundled, Ref: "tool"}}
	const want = `agents.tools runs the actions that it has, and has none; add to [agents.tools]: actions = ["add"]`
	if faults := toolAgentFaults(cfg, a); len(faults) != 1 || faults[0].Message != want {
		t.Errorf("got %v, want %q", faults, want)
	}
	a.Actions = []string{"add"}
	if faults := toolAgentFaults(cfg, a); len(faults) != 0 {
		t.Errorf("got %v", faults)
	}
}

func TestMay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ key, value, want string }{
		{"llm", ``, "spend model tokens"}, {"llm", `["default","large"]`, "spend tokens of the models default, large"},
		{"http", `"https://a.example"`, "call https://a.example"}, {"http", ``, "call what the operator names"},
		{"kv", ``, "keep data"}, {"kv", `"task"`, "keep data for each task"},
		{"secrets", `["key"]`, "have secrets added to its calls: key"}, {"gpu", ``, `use "gpu"`}, {"gpu", `"two"`, `use "gpu": two`},
	} {
		if got := May(abi.Request{Allow: tc.key, Value: json.RawMessage(tc.value)}); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.key, tc.value, got, tc.want)
		}
	}
}
