package config

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"skep/host/internal/turn"
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
	// FromParams are the references among HTTP and HTTPNoKey, which hold what they stand for.
	FromParams []ParamGrant
}

// any reports whether anything is granted.
func (a Allow) any() bool {
	return len(a.LLM)+len(a.HTTP)+len(a.HTTPNoKey)+len(a.Secrets) > 0 || a.KV != ""
}

// Settings are in the order of a composition's JSON, by whose digest it is known.
func (a *Agent) Settings() []Setting {
	return []Setting{
		readElsewhere(&a.Source, "source", "string", "The code: `file:PATH`, `bundled:NAME`, `exec:PATH` or `oci://REFERENCE@sha256:DIGEST`.").neededElsewhere(),
		field(&a.SHA256, "sha256", "digest", (*table).digest, "Digest of the module in hexadecimal digits; code with another one is refused."),
		readElsewhere(&a.CommTargets, "comm_targets", "list of strings", "Agents it may write to, by name; `NAME@SWARM` for one of another swarm.").by(Grant),
		boolean(&a.EnableEntrypoint, "enable_entrypoint", false, "Users may post to it.").by(Grant),
		boolean(&a.CanCompleteTasks, "can_complete_tasks", false, "It may call `task_complete`.").by(Grant),
		boolean(&a.EnableInterswarm, "enable_interswarm", false, "It may write to agents of other swarms.").by(Grant).planned("interswarm"),
		field(&a.Actions, "actions", "list of actions", (*table).actionNames, "Actions it may call.").by(Grant),
		field(&a.Expose, "expose", "list of gateways", (*table).gatewayNames, "Gateways that may show it.").by(Grant),
		field(&a.ExcludeTools, "exclude_tools", "list of MAIL tools", (*table).tools, "MAIL tools it does not get.").by(Except),
		field(&a.Params, "params", "table", (*table).params, "What its code is given with each turn, as it is. `file::` is read, `env::` is refused."),
		section("allow", a.Allow.Settings(), "What it may do beyond mail."),
		section("limits", a.Limits.Settings(), "What one turn may use."),
		boolean(&a.Trusted, "trusted", false, "Its program may run outside the sandbox; for `exec:` sources.").by(Grant).ofOperator(),
		readElsewhere(&a.Readable, "readable", "list of paths", "Files and directories its process may read; for `exec:` sources.").by(Grant).ofOperator(),
	}
}

// Settings are the keys of the allow table, in the order of a composition's JSON.
func (a *Allow) Settings() []Setting {
	return []Setting{
		field(&a.LLM, "llm", "list of models", (*table).modelNames, "Models it may ask, by their names in `[models]`.").by(Grant),
		field(&a.HTTP, "http", "list of HTTP grants", (*table).texts, "Where its requests may go: `[METHODS ]scheme://host[:port][/prefix]`, or `[METHODS ]{params.NAME}`.").by(Web),
		field(&a.HTTPNoKey, "http_no_key", "list of HTTP grants", (*table).texts, "The same, for requests that carry no `Idempotency-Key`.").by(Web),
		boolean(&a.HTTPPrivate, "http_private", false, "Grants that name a private address reach it.").by(Grant),
		choice(&a.KV, "kv", "", []string{"task", "agent", "instance"}, "The widest scope in which it may keep values.").by(Grant),
		field(&a.Secrets, "secrets", "list of secrets", (*table).secretNames, "Secrets that the host puts into its requests, by their names in `[secrets]`.").by(Grant),
		boolean(&a.RetryInDoubt, "retry_in_doubt", true, "A request whose answer was lost with the host is sent again, under the same key.").by(Grant).leftToFile(),
	}
}

// AgentLimits bounds one turn of an agent. None but Tokens and USD can be switched
// off.
type AgentLimits struct {
	Memory    Size
	Turn, CPU time.Duration
	Fuel      int64
	Output    Size
	Stack     Size
	HostCalls int
	HostBytes Size
	Grace     time.Duration
	Tokens    int64
	USD       float64
}

// Settings are the limits of a turn, in the order of a composition's JSON.
func (l *AgentLimits) Settings() []Setting {
	def := turn.DefaultLimits()
	return allLimits(
		size(&l.Memory, "memory", Size(def.Memory), 64*KiB, 4*GiB, "Linear memory. At the limit `memory.grow` fails; a module that declares more fails its turn."),
		span(&l.Turn, "turn", 10*time.Minute, time.Millisecond, day, "Wall time, waiting included. Beyond it the turn fails.").ofAgents(),
		span(&l.CPU, "cpu", def.CPU, time.Millisecond, day, "Computing time. Beyond it the turn fails.").ofModules(),
		count(&l.Fuel, "fuel", int64(def.Fuel), 1, 1e15, "Instructions, counted the same on every machine. Beyond it the turn fails.").ofModules(),
		size(&l.Output, "output", Size(def.Output), 1, 256*MiB, "What the turn returns. Beyond it the turn fails."),
		size(&l.Stack, "stack", Size(def.Stack), 64*KiB, 32*MiB, "Call stack. Beyond it the turn fails.").ofModules(),
		count(&l.HostCalls, "host_calls", int(def.HostCalls), 1, 1_000_000, "Ops. One beyond it is refused with LIMIT and does not run."),
		size(&l.HostBytes, "host_bytes", Size(def.HostBytes), KiB, 4*GiB, "Requests and answers of ops together. An op beyond it is refused with LIMIT."),
		span(&l.Grace, "grace", def.Grace, time.Millisecond, time.Minute, "What is left of a turn that is called off."),
		count(&l.Tokens, "tokens", 0, 1, 1e15, "Tokens of models in one task. Calls that do not fit are refused with LIMIT.").unlimited().ofAgents(),
		money(&l.USD, "usd", "Dollars for models in one task. Calls that do not fit are refused with LIMIT.").ofAgents(),
	)
}

// ofCalls are the limits of one call of an action.
func (l *AgentLimits) ofCalls() []Setting {
	return slices.DeleteFunc(l.Settings(), func(s Setting) bool { return s.Agents })
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

func (d *decoder) agents(t *table, s Swarm) []*draft {
	var out []*draft
	names, subs := t.named("agents")
	for i, sub := range subs {
		out = append(out, d.agent(names[i], sub, s))
	}
	return out
}

func (d *decoder) agent(name string, t *table, s Swarm) *draft {
	d.checkName(t.keyAsValue(name), "an agent", false)
	a := &draft{at: t, targets: t.list("comm_targets")}
	a.Agent = Agent{Name: name, CommTargets: []string{}, Pos: d.pos(t.location)}
	t.read(a.Settings())
	a.ExcludeTools = union(s.ExcludeTools, a.ExcludeTools)
	d.resolveParamGrants(t, a.Params, &a.Allow)
	a.Source = d.source(t, a.SHA256, a.Trusted)
	a.Readable = d.readable(t, a.Source)
	d.checkProcess(t, a.Source)
	d.checkParams(t, a.Source)
	d.untrusted(t, a.Trusted, a.Source)
	t.refuseUnknown()
	return a
}

func (t *table) actionNames(key string) []string  { return t.among(key, "action", t.d.known.actions) }
func (t *table) gatewayNames(key string) []string { return t.among(key, "gateway", t.d.gatewayNames()) }
func (t *table) modelNames(key string) []string   { return t.among(key, "model", t.d.known.models) }
func (t *table) secretNames(key string) []string  { return t.among(key, "secret", t.d.known.secrets) }

// among reads names out of a set that the file or the grammar gives.
func (t *table) among(key, what string, options []string) []string {
	items := t.list(key)
	if t.d.remote != nil && t.d.remote.literal {
		return textsOf(items) // what it names may be gone by now
	}
	for _, v := range items {
		if !slices.Contains(options, v.text) {
			f := t.d.atValue(v.location, "unknown "+what+" "+v.shown)
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
		t.d.atValue(v.location, v.path+" must be 64 hexadecimal digits")
	}
	return strings.ToLower(v.text)
}

func union(a, b []string) []string {
	out := append(append([]string{}, a...), b...)
	slices.Sort(out)
	return slices.Compact(out)
}
