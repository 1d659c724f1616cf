package config

import (
	"errors"
	"strings"
	"testing"
)

const composed = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
keywords = ["a", "b"]
breakpoint_tools = ["confirm"]
exclude_tools = ["send_broadcast"]
enable_interswarm = true
allow_agent_discovery = true
[agents.boss]
source = "file:composition_test.go"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
actions = ["confirm"]
params = { text = "a", deep = { list = [1, 2.5, true, "<&>"] } }
allow = { kv = "agent", http = ["GET https://api.example.com"], secrets = ["key"], retry_in_doubt = false }
limits = { memory = "48MiB", turn = "90s", fuel = 1_000_000 }
[agents.math]
source = "file:composition_test.go"
comm_targets = ["boss"]
[actions.confirm]
source = "human"
description = "d"
parameters = { type = "object" }
[secrets.key]
value = "x"
hosts = ["https://api.example.com"]
header = "X-Key"
`

// referenceSwarm is a swarm as the file of the reference has it.
const referenceSwarm = `{"name":"hive","version":"1.3.6","entrypoint":"boss","enable_interswarm":false,
	"agents":[{"name":"boss","factory":"python::crew.agents:boss","comm_targets":[],"enable_entrypoint":true,"can_complete_tasks":true,
	"agent_params":{"llm":"a/b","thinking_budget":null}}],"actions":[]}`

func composedConfig(t testing.TB) *Config {
	t.Helper()
	c, err := Parse("swarm.toml", []byte(composed), ".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What is written is read as it was, over the network and from a store.
func TestCompositionRoundTrip(t *testing.T) {
	t.Parallel()
	c := composedConfig(t)
	text := c.Composition().JSON()
	for name, parse := range map[string]func([]byte) (Composition, error){"parse": c.ParseComposition, "recall": c.RecallComposition} {
		x, err := parse(text)
		if err != nil || string(x.JSON()) != string(text) || x.Digest() != c.Composition().Digest() {
			t.Errorf("%s: %v\n%s\n%s", name, err, text, x.JSON())
		}
	}
}

// What the file's references gave may look like one, and is none.
func TestRecallIsLiteral(t *testing.T) {
	t.Parallel()
	c := composedConfig(t)
	text := strings.Replace(string(c.Composition().JSON()), `"text":"a"`, `"text":"file::/etc/passwd"`, 1)
	if _, err := c.ParseComposition([]byte(text)); err == nil {
		t.Error("a reference came over the network")
	}
	x, err := c.RecallComposition([]byte(text))
	if err != nil || !strings.Contains(string(x.Agents[0].Params), "file::/etc/passwd") {
		t.Errorf("%v %s", err, x.Agents[0].Params)
	}
	// What it names may be gone.
	c.Secrets = nil
	if x, err = c.RecallComposition([]byte(text)); err != nil || len(x.Agents[0].Allow.Secrets) != 1 {
		t.Errorf("%v %v", err, x.Agents[0].Allow.Secrets)
	}
}

// Every fault names the path it is at.
func TestParseCompositionFaults(t *testing.T) {
	t.Parallel()
	c := composedConfig(t)
	whole := string(c.Composition().JSON())
	for text, want := range map[string]string{
		``: "not JSON", `[]`: "JSON object", `{"swarm":`: "not JSON", whole + `x`: "after the definition", `{"a":1,"a":2}`: "a stands twice",
		`null`:                                   "the definition is null; it must be a JSON object",
		referenceSwarm:                           "this is a swarm in the form of the MAIL reference, whose agents are Python factories; write them into swarm.toml",
		"[" + referenceSwarm + "]":               "this is a swarm in the form of the MAIL reference",
		`[{"agents":{}}]`:                        "the definition must be a JSON object",
		`{"":null}`:                              `"" is null`,
		`{"agents":{"boss":{"actions":[null]}}}`: "agents.boss.actions[0] is null",
		`{"swarm":null}`:                         "swarm is null",
		`{"swarm":{"name":1e999}}`:               "swarm.name is a number that is too large",
		strings.Repeat(`{"a":`, 40) + `1`:        "nested deeper",
		"{\"swarm\":\"\xff\"}":                   "not UTF-8",
		`{"swarm":"` + strings.Repeat("x", maxComposition) + `"}`: "more than 524288 bytes",
		`{"models":{}}`: "models: a definition has",
		strings.Replace(whole, `"memory":50331648`, `"memory":"48MB2"`, 1):               "agents.boss.limits.memory",
		strings.Replace(whole, `"memory":50331648`, `"memory":"file::x"`, 1):             "env:: and file:: are the operator's",
		strings.Replace(whole, `"confirm":{`, `"confirm":{"trusted":false,`, 1):          "actions.confirm.trusted",
		strings.Replace(whole, `"source":"human"`, `"source":"exec:/bin/sh"`, 1):         "brings no code",
		strings.Replace(whole, `"source":"file:composition_test.go",`, ``, 1):            "agents.boss.sha256 is missing",
		strings.Replace(whole, `"retry_in_doubt":false`, `"retry_in_doubt":"env::A"`, 1): "env:: and file:: are the operator's",
	} {
		_, err := c.ParseComposition([]byte(text))
		var faults Faults
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	var many strings.Builder
	for i := range maxComposed + 1 {
		many.WriteString(`,"a` + strings.Repeat("b", i+1) + `":{}`)
	}
	if _, err := c.ParseComposition([]byte(`{"agents":{` + many.String()[1:] + `}}`)); err == nil || !strings.Contains(err.Error(), "agents has 257 entries") {
		t.Error(err)
	}
}

// FuzzParseComposition wants every text to be read one way or refused.
func FuzzParseComposition(f *testing.F) {
	c := composedConfig(f)
	whole := string(c.Composition().JSON())
	for _, seed := range []string{
		whole, `{}`, `{"swarm":{"name":"hive","entrypoint":"a"},"agents":{"a":{"sha256":"` + strings.Repeat("a", 64) + `","enable_entrypoint":true,"can_complete_tasks":true}}}`,
		strings.Replace(whole, `"a"`, `"env::HOME"`, 1), `{"agents":{"a":{"params":{"x":[[[{}]]]}}}}`, `[1e999]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := c.ParseComposition([]byte(text))
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		for i := range x.Agents {
			x.Agents[i].Limits = c.Agents[0].Limits // what is left out has no text
		}
		written := x.JSON()
		again, err := c.ParseComposition(written)
		if err != nil || string(again.JSON()) != string(written) {
			t.Fatalf("%v\n%s\n%s", err, written, again.JSON())
		}
	})
}
