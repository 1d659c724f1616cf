package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const withServers = `schema = 1
[swarm]
name = "hive"
entrypoint = "a"
[agents.a]
source = "file:build/calc.wasm"
can_complete_tasks = true
enable_entrypoint = true
actions = ["read", "write", "mine"]
[actions.read]
source = "mcp:notes/read"
[actions.write]
source = "mcp:notes/write"
allow = { retry_in_doubt = true }
[actions.mine]
source = "mcp:notes/read"
description = "Mine."
parameters = { type = "object", required = ["name"] }
allow = { retry_in_doubt = false }
[mcp.notes]
command = ["./server.sh", "--stdio"]
trusted = true
env = { PLAIN = "x", KEY = "env::OPS_KEY" }
idle = "1m"
[mcp.web]
url = "https://x.example/mcp/"
auth_token = "env::OPS_KEY"
max_result = "2MiB"
pins = "web.pins"
`

func TestMCP(t *testing.T) {
	t.Parallel()
	text := strings.Replace(withServers, "pins = \"web.pins\"\n", "", 1)
	c := mustParse(t, text)
	here, err := filepath.Abs("testdata/valid")
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.MCP {
		m := &c.MCP[i]
		m.Pos = Pos{}
		for _, p := range append([]*string{&m.Pins}, firsts(m.Command)...) {
			if full, err := filepath.Abs(*p); err == nil {
				*p, _ = filepath.Rel(here, full)
			}
		}
	}
	tools := c.MCP[0].Tools
	want := []MCP{
		{Name: "notes", Command: []string{"server.sh", "--stdio"}, Env: []EnvVar{{"PLAIN", "x", false}, {"KEY", "0123456789abcdef-ops", true}}, Trusted: true,
			Timeout: 30 * time.Second, Idle: time.Minute, MaxResult: MiB, Pins: "notes.mcp.json", Tools: tools, InUse: []string{"read", "write"}},
		{Name: "web", URL: "https://x.example/mcp/", AuthToken: "0123456789abcdef-ops", Timeout: 30 * time.Second, Idle: 5 * time.Minute, MaxResult: 2 * MiB, Pins: "web.mcp.json"},
	}
	if diff := cmp.Diff(want, c.MCP, revealed); diff != "" || len(tools) != 2 {
		t.Error(diff)
	}
	for i, want := range []struct {
		description, parameters string
		retry                   bool
	}{
		{"Reads a note.", `{"properties":{"name":{"type":"string"}},"type":"object"}`, true},
		{"Writes a note.", `{"type":"object"}`, true},
		{"Mine.", `{"required":["name"],"type":"object"}`, false},
	} {
		a := c.Actions[i]
		if a.Description != want.description || string(a.Parameters) != want.parameters || a.Allow.RetryInDoubt != want.retry || a.Source.Kind != SourceMCP || len(a.SHA256) != 64 {
			t.Errorf("%+v", a)
		}
	}
	if c.Actions[0].SHA256 != tools[0].SHA256 || c.Actions[1].SHA256 != tools[1].SHA256 {
		t.Error("the actions have other pins")
	}
	x, err := c.RecallComposition(c.Composition().JSON())
	if err != nil || string(x.JSON()) != string(c.Composition().JSON()) || x.Actions[2].Source != c.Actions[2].Source {
		t.Errorf("%v\n%s\n%s", err, x.JSON(), c.Composition().JSON())
	}
	keys := map[string]string{}
	for _, s := range Explain(c) {
		keys[s.Key] = s.Value
	}
	if keys["mcp.notes.idle"] != "1m" || keys["mcp.web.max_result"] != "2MiB" || keys["mcp.web.timeout"] != "30s" {
		t.Errorf("%v", keys)
	}
}

func firsts(list []string) (first []*string) {
	if len(list) > 0 {
		first = append(first, &list[0])
	}
	return first
}

// A write is not sent twice unless its tool is repeatable; neither a read that is not said
// to be one.
func TestMCPRetryDefault(t *testing.T) {
	t.Parallel()
	c := mustParse(t, strings.Replace(strings.Replace(withServers, "allow = { retry_in_doubt = true }\n", "", 1), "pins = \"web.pins\"\n", "", 1))
	if !c.Actions[0].Allow.RetryInDoubt || c.Actions[1].Allow.RetryInDoubt {
		t.Errorf("%v %v", c.Actions[0].Allow, c.Actions[1].Allow)
	}
}

// Who pins tools needs no tools that are pinned.
func TestMCPServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"swarm.toml": withServers, "server.sh": "#!/bin/sh\n", "notes.mcp.json": "broken"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	servers, err := MCPServers(filepath.Join(dir, "swarm.toml"), testOptions)
	if err != nil || len(servers) != 2 || servers[0].Command[0] != filepath.Join(dir, "server.sh") || len(servers[0].Tools) != 0 {
		t.Errorf("%+v, %v", servers, err)
	}
	if _, err := MCPServers(filepath.Join(dir, "none.toml"), testOptions); err == nil {
		t.Error("a file that is not there")
	}
	if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), []byte("[mcp.a]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := MCPServers(filepath.Join(dir, "swarm.toml"), testOptions); err == nil || !strings.Contains(err.Error(), "mcp.a.command is missing") {
		t.Error(err)
	}
}

// A program is found in PATH, and there only in directories with a full path.
func TestProgramInPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: filepath.Join(dir, "tool"), "/nowhere:" + dir: filepath.Join(dir, "tool"), "": "", ".": "", "/nowhere": ""} {
		d := &decoder{dir: dir, opt: Options{Env: func(name string) (string, bool) { return path, name == "PATH" }}}
		got, err := d.program("tool")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
}
