package narrowing

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/definition/config"
)

const grants = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
breakpoint_tools = ["task_complete"]
[agents.boss]
source = "file:file_test.go"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
exclude_tools = ["send_broadcast"]
allow = { kv = "task", secrets = ["key"], http = ["https://a.example"] }
limits = { memory = "64MiB", turn = "1m" }
[agents.math]
source = "file:file_test.go"
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

// beside is a definition of math and a boss that it is not about.
func beside(math string) []byte {
	return []byte(`{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{
		"boss":{"source":"file:file_test.go","comm_targets":["math"],"enable_entrypoint":true,"can_complete_tasks":true},
		"math":{"comm_targets":["boss"],` + math + `}}}`)
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
		{`"source":"file:file_test.go","limits":{"memory":"16MiB"}`, 16 * config.MiB, time.Minute, ""},
		{`"source":"file:file_test.go","allow":{"kv":"agent"}`, 0, 0, `agents.x.allow.kv: the operator's file does not grant "agent" to "boss"`},
		{`"source":"file:file_test.go","limits":{"turn":"2m"}`, 0, 0, "agents.x.limits.turn: more than the 1m0s of agents.boss"},
		{`"source":"file:file_test.go","limits":{"turn":"2m","memory":"33MiB"}`, 0, 0, "agents.x.limits.turn: more than the 1m0s of agents.boss"},
		{`"source":"file:file_test.go","allow":{"kv":"agent","secrets":["key"]}`, 0, 0, `agents.x.allow.kv: the operator's file does not grant "agent" to "boss"`},
		{`"source":"file:file_test.go","allow":{"kv":"agent","retry_in_doubt":true}`, 0, 0, "agents.x.allow.kv"},
		{`"sha256":"` + strings.Repeat("cd", 32) + `"`, 0, 0, "no agent of the operator's file runs on this module"},
		{`"source":"file:file_test.go","sha256":"` + strings.Repeat("cd", 32) + `"`, 0, 0, "no agent of the operator's file runs on this module"},
	} {
		x, err := f.Admit(single(c.agent))
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

// An agent of the file's name and module is held against that one alone, and has
// no more part in the swarm than the file gives it.
// A program of the operator's runs for the agent that the file trusts, and for no
// other.
func TestJudgeProgram(t *testing.T) {
	f := testFile(t, strings.Replace(grants, "[agents.math]\nsource = \"file:file_test.go\"", "[agents.math]\nsource = \"exec:file_test.go\"\ntrusted = true", 1))
	f.Modules["math"] = strings.Repeat("cd", 32)
	program := `"sha256":"` + f.Modules["math"] + `"`
	x, err := f.Admit(beside(program))
	if err != nil || !x.Agents[1].Trusted || x.Agents[1].Source.Kind != config.SourceExec {
		t.Errorf("under its own name: %+v %v", x.Agents, err)
	}
	_, err = f.Admit(single(program))
	if err == nil || !strings.Contains(err.Error(), "it would run outside the sandbox") {
		t.Errorf("under another name: %v", err)
	}
}

func TestJudgeByName(t *testing.T) {
	t.Parallel()
	f := testFile(t, grants)
	x, err := f.Admit(beside(`"source":"file:file_test.go","allow":{"kv":"instance"},"limits":{"turn":"2m"}`))
	if err != nil || x.Agents[1].Limits.Memory != 32*config.MiB {
		t.Errorf("%+v, %v", x.Agents, err)
	}
	const none = "the operator's file does not grant "
	for math, says := range map[string]string{
		`"source":"file:file_test.go","allow":{"secrets":["key"]}`: `agents.math.allow.secrets: ` + none + `"key" to "math"`,
		`"sha256":"` + digest + `","limits":{"memory":"64MiB"}`:    "agents.math.limits.memory: more than the 32MiB of agents.math",
		`"source":"file:file_test.go","enable_entrypoint":true`:    `agents.math.enable_entrypoint: ` + none + `it to "math"`,
		`"source":"file:file_test.go","can_complete_tasks":true`:   `agents.math.can_complete_tasks: ` + none + `it to "math"`,
		`"source":"file:file_test.go","enable_interswarm":true`:    `agents.math.enable_interswarm`,
	} {
		if _, err := f.Admit(beside(math)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", math, err, says)
		}
	}
	public := strings.Replace(string(beside(`"sha256":"`+digest+`"`)), `"name"`, `"public":true,"name"`, 1)
	if _, err := f.Admit([]byte(public)); err == nil || !strings.Contains(err.Error(), "swarm.public: "+none+"it") {
		t.Errorf("public: %v", err)
	}
	f = testFile(t, strings.Replace(grants, "breakpoint_tools", "public = true\nbreakpoint_tools", 1))
	if _, err := f.Admit([]byte(public)); err != nil {
		t.Errorf("public as the file is: %v", err)
	}
}

// One module under two sources is one module: its other source brings no other
// grants.
func TestJudgeOneModuleTwoSources(t *testing.T) {
	t.Parallel()
	f := testFile(t, strings.Replace(grants, `[agents.boss]
source = "file:file_test.go"`, `[agents.boss]
source = "file:narrow.go"`, 1))
	_, err := f.Admit(beside(`"source":"file:narrow.go","allow":{"secrets":["key"]}`))
	if err == nil || !strings.Contains(err.Error(), `does not grant "key" to "math"`) {
		t.Error(err)
	}
}

// What was judged once is judged the same again, and nothing is left of it but
// what the file still grants.
func TestNarrow(t *testing.T) {
	t.Parallel()
	f := testFile(t, grants)
	x, err := f.Admit(single(`"source":"file:file_test.go","allow":{"secrets":["key"],"http":["https://a.example"],"kv":"task"},"limits":{"memory":"48MiB"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(x.JSON()), string(f.Narrow(x, false).JSON())); diff != "" {
		t.Error(diff)
	}
	if again, err := f.Admit(x.JSON()); err != nil || again.Digest() != x.Digest() {
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

const interswarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:file_test.go"
comm_targets = ["math", "stats@depot", "*@yard"]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
[agents.math]
source = "file:file_test.go"
comm_targets = ["boss", "stats@depot"]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
`

// part is what an agent has to do with others.
type part struct {
	Entry, Completes, Abroad bool
	Targets                  string
}

func parts(x config.Composition) map[string]part {
	all := map[string]part{}
	for _, a := range x.Agents {
		all[a.Name] = part{a.EnableEntrypoint, a.CanCompleteTasks, a.EnableInterswarm, strings.Join(a.CommTargets, " ")}
	}
	return all
}

// A task keeps its own swarm, whatever the file says of it today, and has of other
// swarms what the file leaves. It can always be answered and completed.
func TestNarrowParts(t *testing.T) {
	t.Parallel()
	f := testFile(t, interswarm)
	const (
		entry     = "enable_entrypoint = true\n"
		completes = "can_complete_tasks = true\n"
		goes      = "enable_interswarm = true\n"
	)
	boss, math, _ := strings.Cut(interswarm, "[agents.math]")
	math = "[agents.math]" + math
	const bossTargets, mathTargets = "math stats@depot *@yard", "boss stats@depot"
	for name, c := range map[string]struct {
		file string
		want map[string]part
	}{
		"as it was": {interswarm, map[string]part{"boss": {true, true, true, bossTargets}, "math": {true, true, true, mathTargets}}},
		"narrower flags": {
			boss + strings.NewReplacer(entry, "", completes, "").Replace(math),
			map[string]part{"boss": {true, true, true, bossTargets}, "math": {false, false, true, mathTargets}},
		},
		"one agent of a swarm": {
			strings.NewReplacer(`, "stats@depot"`, "", `"*@yard"`, `"keeper@yard", "other@yard"`).Replace(interswarm),
			map[string]part{"boss": {true, true, true, "math keeper@yard other@yard"}, "math": {true, true, true, "boss"}},
		},
		"no other swarms": {
			strings.NewReplacer(goes, "", `, "stats@depot"`, "", `, "*@yard"`, "").Replace(interswarm),
			map[string]part{"boss": {true, true, false, "math"}, "math": {true, true, false, "boss"}},
		},
		"another who completes": {
			strings.NewReplacer("[agents.boss]\n", "[agents.chief]\n"+entry+completes+"source = \"file:file_test.go\"\ncomm_targets = [\"math\", \"boss\"]\n[agents.boss]\n",
				`entrypoint = "boss"`, `entrypoint = "chief"`).Replace(strings.NewReplacer(entry, "", completes, "").Replace(interswarm)),
			map[string]part{"boss": {true, true, true, bossTargets}, "math": {false, true, true, mathTargets}},
		},
		"a name that is gone": {
			strings.NewReplacer("agents.boss", "agents.chief", `"boss"`, `"chief"`).Replace(interswarm),
			map[string]part{"boss": {true, true, false, "math"}, "math": {true, true, true, mathTargets}},
		},
	} {
		less := testFile(t, c.file)
		less.Modules = map[string]string{"boss": "another", "math": "another", "chief": "another"}
		got := less.Narrow(f.Own(), true)
		if diff := cmp.Diff(c.want, parts(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if interswarm := strings.Contains(c.file, "\n"+goes); got.Swarm.EnableInterswarm != interswarm {
			t.Errorf("%s: the swarm has enable_interswarm = %v", name, got.Swarm.EnableInterswarm)
		}
		if diff := cmp.Diff(f.Own().JSON(), f.Narrow(f.Own(), true).JSON()); diff != "" {
			t.Errorf("what was narrowed has changed: %s", diff)
		}
	}
}

// What two addresses of other swarms have in common is what is left.
func TestNarrowTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, today, want string }{
		{"math", "", "math"},
		{"a@depot", "a@depot", "a@depot"},
		{"a@depot", "b@depot a@yard a", ""},
		{"a@depot", "*@depot *@*", "a@depot"},
		{"*@depot", "a@depot b@depot", "a@depot b@depot"},
		{"*@*", "a@depot *@yard a", "a@depot *@yard"},
	} {
		got := narrowTargets(strings.Fields(c.asked), strings.Fields(c.today))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s by %s: %q, want %q", c.asked, c.today, got, c.want)
		}
	}
}

// A person's consent and the tools that agents do not get hold for unfinished tasks as
// soon as the file has them, and a task can still be completed.
func TestNarrowAddsExceptions(t *testing.T) {
	t.Parallel()
	own := actionFile(t).Own()
	own.Swarm.BreakpointTools = slices.Grow(own.Swarm.BreakpointTools, 4) // room that others must not write to
	today := strings.NewReplacer(
		`breakpoint_tools = ["task_complete"]`, "breakpoint_tools = [\"send_request\", \"price\", \"confirm\"]\nexclude_tools = [\"send_interrupt\"]",
		"comm_targets = [\"boss\"]\n", "comm_targets = [\"boss\"]\nexclude_tools = [\"send_response\"]\n",
		"enable_entrypoint = true\ncan_complete_tasks = true\n", "enable_entrypoint = true\n",
		`exclude_tools = ["send_broadcast"]`, `exclude_tools = ["task_complete"]`,
		"[secrets.key]", "[actions.confirm]\nsource = \"human\"\ndescription = \"d\"\nparameters = {}\n[agents.chief]\nsource = \"file:file_test.go\"\ncan_complete_tasks = true\n[secrets.key]",
	).Replace(withAction)
	f := testFile(t, today)
	f.Modules["chief"] = "another"
	got := f.Narrow(own, true)
	want := [][]string{
		{"task_complete", "send_request", "price"}, // confirm is no action of the composition
		{"send_broadcast", "send_interrupt"},       // boss alone could complete the task
		{"send_interrupt", "send_response"},
	}
	have := [][]string{got.Swarm.BreakpointTools, got.Agents[0].ExcludeTools, got.Agents[1].ExcludeTools}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	if had := own.Swarm.BreakpointTools; len(had) != 1 || slices.Contains(had[:cap(had)], "send_request") {
		t.Errorf("what was narrowed has changed: %q", had[:cap(had)])
	}
	f.Modules = map[string]string{"boss": "another", "math": "another", "chief": "another"}
	if gone := f.Narrow(own, false).Agents[1].ExcludeTools; !slices.Contains(gone, "send_interrupt") {
		t.Errorf("an agent that the file has no more has the tools of all but %q", gone)
	}
}

// A grant that refers to params is as wide as the params of the file: other params in a
// definition over the network give no other host, however the grant is written.
func TestGrantsFromParamsAreTheFiles(t *testing.T) {
	t.Parallel()
	f := testFile(t, strings.Replace(grants, `http = ["https://a.example"] }`, `http = ["{params.base}"] }`+"\nparams = { base = \"https://a.example\" }", 1))
	for agent, want := range map[string]string{
		`"params":{"base":"https://a.example"},"allow":{"http":["{params.base}"]}`:    "",
		`"params":{"base":"https://evil.example"},"allow":{"http":["{params.base}"]}`: `does not grant "https://evil.example" to "boss"`,
		`"params":{"base":"https://evil.example"}`:                                    "",
		`"allow":{"http":["{params.base}"]}`:                                          "agents.x.params.base is missing",
	} {
		x, err := f.Admit(single(`"source":"file:file_test.go",` + agent))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", agent, err, want)
		}
		if err == nil && slices.ContainsFunc(x.Agents[0].Allow.HTTP, func(g string) bool { return g != "https://a.example" }) {
			t.Errorf("%s is granted %q", agent, x.Agents[0].Allow.HTTP)
		}
	}
}
