package config

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"skep/spec/mail"
)

// Agent is one [agents.NAME] table.
type Agent struct {
	Name             string
	Source           Source
	SHA256           string   // of the module, 64 lower-case hex digits, or empty
	CommTargets      []string // local names, or agent@swarm of another swarm
	EnableEntrypoint bool
	CanCompleteTasks bool
	EnableInterswarm bool
	Actions          []string
	Expose           []string // gateways that may show this agent
	Trusted          bool     // may run outside the sandbox
	Readable         []string // what a subprocess may read, as paths on disk
	ExcludeTools     []string // those of the swarm included
	Params           json.RawMessage
	Allow            Allow
	Limits           AgentLimits
	Pos              Pos
}

// Tools are the names of all that an agent can be given to call: MAIL's tools and
// its actions.
func (a Agent) Tools() []string { return slices.Concat(mail.Tools(), a.Actions) }

// Allow is what an agent is granted beyond mail. Empty means nothing.
type Allow struct {
	LLM          []string // names of models
	HTTP         []string // grants, [METHODS ]scheme://host[:port][/prefix]; unchecked
	HTTPNoKey    []string // the same, for requests that carry no Idempotency-Key
	HTTPPrivate  bool     // grants of private addresses reach them
	KV           string   // the widest scope: "task", "agent" or "instance"
	Secrets      []string // names of secrets
	RetryInDoubt bool     // send an effect again whose answer was lost
}

// any reports whether anything is granted.
func (a Allow) any() bool {
	return len(a.LLM)+len(a.HTTP)+len(a.HTTPNoKey)+len(a.Secrets) > 0 || a.KV != ""
}

// AgentLimits bounds one turn of an agent. None but the last two can be switched
// off.
type AgentLimits struct {
	Memory    Size
	Turn      time.Duration // wall time, waiting included
	CPU       time.Duration // computing time
	Fuel      int64
	Output    Size
	Stack     Size
	HostCalls int
	HostBytes Size          // moved by host calls
	Grace     time.Duration // what is left of a turn that is called off
	Tokens    int64         // of models, in one task; 0 for unlimited, as USD
	USD       float64       // for models, in one task
}

func defaultAgentLimits() AgentLimits {
	return AgentLimits{
		Memory: 64 * MiB, Turn: 10 * time.Minute, CPU: 10 * time.Second, Fuel: 200_000_000_000,
		Output: MiB, Stack: 8 * MiB, HostCalls: 1000, HostBytes: 16 * MiB, Grace: 250 * time.Millisecond,
	}
}

// draft is an agent whose references to other parts of the file are not checked
// yet, with the places of these.
type draft struct {
	Agent
	at      *table
	targets []value
}

// known is what an agent may name besides other agents.
type known struct {
	models, secrets, actions []string
	mcp                      []MCP
}

func (d *decoder) agents(t *table, s Swarm, k known) []*draft {
	var out []*draft
	names, subs := t.named("agents")
	for i, sub := range subs {
		out = append(out, d.agent(names[i], sub, s, k))
	}
	return out
}

func (d *decoder) agent(name string, t *table, s Swarm, k known) *draft {
	d.checkName(t.keyAsValue(name), "an agent", false)
	a := &draft{at: t, targets: t.list("comm_targets")}
	a.Agent = Agent{
		Name:             name,
		CommTargets:      []string{},
		SHA256:           t.digest("sha256"),
		EnableEntrypoint: t.boolean("enable_entrypoint", false),
		CanCompleteTasks: t.boolean("can_complete_tasks", false),
		EnableInterswarm: t.boolean("enable_interswarm", false),
		Actions:          t.among("actions", "action", k.actions),
		Expose:           t.among("expose", "gateway", gatewayNames),
		Trusted:          t.boolean("trusted", false),
		ExcludeTools:     union(s.ExcludeTools, t.tools("exclude_tools")),
		Params:           t.params("params"),
		Allow:            d.allow(t.table("allow"), k),
		Limits:           d.agentLimits(t.table("limits")),
		Pos:              d.pos(t.spot),
	}
	a.Source = d.source(t, a.SHA256, a.Trusted)
	a.Readable = d.readable(t, a.Source)
	d.checkProcess(t, a.Source)
	d.checkParams(t, a.Source)
	d.notRemote(t, "trusted")
	t.needs("interswarm", "enable_interswarm")
	t.needs("expose", "expose")
	d.untrusted(t, a.Trusted, a.Source)
	t.done()
	return a
}

func (d *decoder) allow(t *table, k known) Allow {
	a := Allow{
		LLM:          t.among("llm", "model", k.models),
		HTTP:         t.texts("http"),
		HTTPNoKey:    t.texts("http_no_key"),
		HTTPPrivate:  t.boolean("http_private", false),
		KV:           t.oneOf("kv", "", "task", "agent", "instance"),
		Secrets:      t.among("secrets", "secret", k.secrets),
		RetryInDoubt: t.boolean("retry_in_doubt", d.remote == nil),
	}
	t.done()
	return a
}

func (d *decoder) agentLimits(t *table) AgentLimits {
	def := defaultAgentLimits()
	if d.remote != nil {
		def = AgentLimits{}
	}
	l := AgentLimits{
		Memory:    t.size("memory", def.Memory, bounds{min: int64(64 * KiB), max: int64(4 * GiB)}),
		Turn:      t.duration("turn", def.Turn, within(time.Millisecond, 24*time.Hour)),
		CPU:       t.duration("cpu", def.CPU, within(time.Millisecond, 24*time.Hour)),
		Fuel:      t.number("fuel", counts, def.Fuel, bounds{min: 1, max: 1e15}),
		Output:    t.size("output", def.Output, bounds{min: 1, max: int64(256 * MiB)}),
		Stack:     t.size("stack", def.Stack, bounds{min: int64(64 * KiB), max: int64(32 * MiB)}),
		HostCalls: t.count("host_calls", def.HostCalls, bounds{min: 1, max: 1_000_000}),
		HostBytes: t.size("host_bytes", def.HostBytes, bounds{min: int64(KiB), max: int64(4 * GiB)}),
		Grace:     t.duration("grace", def.Grace, within(time.Millisecond, time.Minute)),
		Tokens:    t.number("tokens", counts, 0, bounds{min: 1, max: 1e15, off: true}),
		USD:       t.money("usd"),
	}
	t.done()
	return l
}

// among reads names out of a set that the file or the grammar gives.
func (t *table) among(key, what string, options []string) []string {
	items := t.list(key)
	if t.d.remote != nil && t.d.remote.literal {
		return textsOf(items) // what it names may be gone by now
	}
	for _, v := range items {
		if !slices.Contains(options, v.text) {
			f := t.d.atValue(v.spot, "unknown "+what+" "+v.shown)
			f.near(v.text, options)
		}
	}
	return textsOf(items)
}

// digest reads a sha256.
func (t *table) digest(key string) string {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	if !sha256Hex.MatchString(v.text) {
		t.d.atValue(v.spot, v.path+" must be 64 hexadecimal digits")
	}
	return strings.ToLower(v.text)
}

func union(a, b []string) []string {
	out := append(append([]string{}, a...), b...)
	slices.Sort(out)
	return slices.Compact(out)
}
