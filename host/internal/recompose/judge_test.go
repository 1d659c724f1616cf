package recompose

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/config"
)

const grants = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
breakpoint_tools = ["task_complete"]
[agents.boss]
source = "file:judge.go"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
exclude_tools = ["send_broadcast"]
allow = { kv = "task", secrets = ["key"], http = ["https://a.example"] }
limits = { memory = "64MiB", turn = "1m" }
[agents.math]
source = "file:judge.go"
comm_targets = ["boss"]
allow = { kv = "instance", retry_in_doubt = false }
limits = { memory = "32MiB", turn = "2m" }
[secrets.key]
value = "x"
hosts = ["https://a.example"]
header = "X-Key"
`

var digest = strings.Repeat("ab", 32)

func testFile(t *testing.T, text string) File {
	t.Helper()
	c, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return File{c, map[string]string{"boss": digest, "math": digest}, slices.Contains[[]string]}
}

func single(agent string) []byte {
	return []byte(`{"swarm":{"name":"hive","entrypoint":"x"},"agents":{"x":{"enable_entrypoint":true,"can_complete_tasks":true,` + agent + `}}}`)
}

// An agent has at most what one agent of the file has on its module, and what it
// does not name is that one's limits, and no grant.
func TestJudge(t *testing.T) {
	t.Parallel()
	f := testFile(t, grants)
	for _, c := range []struct {
		agent  string
		memory config.Size
		turn   time.Duration
		says   string
	}{
		{`"sha256":"` + digest + `"`, 64 * config.MiB, time.Minute, ""},
		{`"source":"file:judge.go","limits":{"memory":"16MiB"}`, 16 * config.MiB, time.Minute, ""},
		{`"source":"file:judge.go","allow":{"kv":"agent"}`, 32 * config.MiB, 2 * time.Minute, ""},
		{`"source":"file:judge.go","limits":{"turn":"2m"}`, 32 * config.MiB, 2 * time.Minute, ""},
		{`"source":"file:judge.go","limits":{"turn":"2m","memory":"33MiB"}`, 0, 0, "agents.x.limits.turn: more than the 1m0s of agents.boss"},
		{`"source":"file:judge.go","allow":{"kv":"agent","secrets":["key"]}`, 0, 0, `agents.x.allow.kv: the operator's file does not grant "agent" to "boss"`},
		{`"source":"file:judge.go","allow":{"kv":"agent","retry_in_doubt":true}`, 0, 0, "agents.x.allow.kv"},
		{`"sha256":"` + strings.Repeat("cd", 32) + `"`, 0, 0, "no agent of the operator's file runs on this module"},
		{`"source":"file:judge.go","sha256":"` + strings.Repeat("cd", 32) + `"`, 0, 0, "no agent of the operator's file runs on this module"},
	} {
		x, err := f.Judge(single(c.agent))
		var refused Refused
		if c.says != "" {
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.agent, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.agent, err)
			continue
		}
		a := x.Agents[0]
		if a.Limits.Memory != c.memory || a.Limits.Turn != c.turn || a.SHA256 != digest || !slices.Equal(x.Swarm.BreakpointTools, []string{"task_complete"}) {
			t.Errorf("%s: %+v, breakpoints %q", c.agent, a, x.Swarm.BreakpointTools)
		}
	}
}

// What was judged once is judged the same again, and nothing is left of it but
// what the file still grants.
func TestNarrow(t *testing.T) {
	t.Parallel()
	f := testFile(t, grants)
	x, err := f.Judge(single(`"source":"file:judge.go","allow":{"secrets":["key"],"http":["https://a.example"],"kv":"task"},"limits":{"memory":"48MiB"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(x.JSON()), string(f.Narrow(x, false).JSON())); diff != "" {
		t.Error(diff)
	}
	if again, err := f.Judge(x.JSON()); err != nil || again.Digest() != x.Digest() {
		t.Errorf("%v\n%s\n%s", err, x.JSON(), again.JSON())
	}
	less := testFile(t, strings.NewReplacer(`secrets = ["key"], `, "", `memory = "64MiB"`, `memory = "24MiB"`, `kv = "instance"`, `kv = "task"`).Replace(grants))
	got := less.Narrow(x, false).Agents[0]
	if len(got.Allow.Secrets) != 0 || got.Allow.KV != "task" || got.Limits.Memory != 24*config.MiB || len(got.Allow.HTTP) != 1 {
		t.Errorf("%+v", got)
	}
	if len(x.Agents[0].Allow.Secrets) != 1 {
		t.Error("what was narrowed has changed")
	}
	less.Modules = map[string]string{"boss": "another", "math": "another"}
	if got := less.Narrow(x, false).Agents[0].Allow; !cmp.Equal(got, config.Allow{}) {
		t.Errorf("on a module that is gone: %+v", got)
	}
	own := f.Own()
	if got := less.Narrow(own, true).Agents[0].Allow; got.KV != "task" || len(got.HTTP) != 1 {
		t.Errorf("the operator's own on an older module: %+v", got)
	}
}
