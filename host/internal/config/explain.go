package config

import (
	"math"
	"strconv"
	"time"
)

// Setting is one limit in force.
type Setting struct {
	Key   string `json:"key"`   // as in the file: agents.calc.limits.memory
	Value string `json:"value"` // in the units of the file, or "unlimited"
	Set   bool   `json:"set"`   // by the file; otherwise it is the default
}

// Amount is the value as a number, to compare it with another one of the same
// setting.
func (s Setting) Amount() float64 {
	if s.Value == unlimited {
		return math.Inf(1)
	}
	for _, parse := range []func(string) (int64, error){parseCount, parseSize, parseDuration} {
		if n, err := parse(s.Value); err == nil {
			return float64(n)
		}
	}
	n, _ := strconv.ParseFloat(s.Value, 64) // an amount of money
	return n
}

const unlimited = "unlimited"

// explainer collects settings in the order in which they are asked for.
type explainer struct {
	c   *Config
	out []Setting
}

// Explain lists every limit that is in force.
func Explain(c *Config) []Setting {
	e := &explainer{c: c}
	e.swarm(c.Limits)
	e.module(c.Limits.Module)
	e.server(c.Server)
	e.store(c.Store)
	for _, t := range c.Tenants {
		e.tenant(t)
	}
	for _, a := range c.Agents {
		e.agent(a)
	}
	for _, a := range c.Actions {
		e.action(a)
	}
	for _, m := range c.MCP {
		e.duration(m.Timeout, "mcp", m.Name, "timeout")
		e.duration(m.Idle, "mcp", m.Name, "idle")
		e.size(m.MaxResult, "mcp", m.Name, "max_result")
	}
	return e.out
}

// tenant lists the quotas of a tenant that the file names.
func (e *explainer) tenant(t Tenant) {
	if e.c.root.child("tenants").child(t.Name) == nil {
		return
	}
	at := func(key string) []string { return []string{"tenants", t.Name, key} }
	e.count(int64(t.Turns), at("turns")...)
	e.count(int64(t.Tasks), at("tasks")...)
	e.count(int64(t.Queue), at("queue")...)
	e.count(t.MessagesPerDay, at("messages_per_day")...)
	e.count(t.TokensPerDay, at("tokens_per_day")...)
	e.money(t.USDPerDay, at("usd_per_day")...)
	if t.Storage == 0 {
		e.add(unlimited, at("storage"))
	} else {
		e.size(t.Storage, at("storage")...)
	}
	e.count(int64(t.Weight), at("weight")...)
}

func (e *explainer) swarm(l Limits) {
	e.count(int64(l.TaskMessages), "limits", "task_messages")
	e.span(l.TaskTimeout, "limits", "task_timeout")
	e.count(int64(l.Instances), "limits", "instances")
	e.count(int64(l.PeerTasks), "limits", "peer_tasks")
	e.count(int64(l.Queue), "limits", "queue")
	e.count(int64(l.Turns), "limits", "turns")
	e.count(l.TaskTokens, "limits", "task_tokens")
	e.money(l.TaskUSD, "limits", "task_usd")
	e.span(l.ProcessIdle, "limits", "process_idle")
	e.duration(l.HTTP.Timeout, "limits", "http", "timeout")
	e.size(l.HTTP.Request, "limits", "http", "request")
	e.size(l.HTTP.Response, "limits", "http", "response")
}

func (e *explainer) module(l ModuleLimits) {
	at := func(key string) []string { return []string{"limits", "module", key} }
	e.size(l.Size, at("size")...)
	e.count(int64(l.Functions), at("functions")...)
	e.size(l.Body, at("body")...)
	e.count(int64(l.Locals), at("locals")...)
	e.count(int64(l.Nesting), at("nesting")...)
	e.count(int64(l.BrTable), at("br_table")...)
	e.count(int64(l.Types), at("types")...)
	e.count(int64(l.Imports), at("imports")...)
	e.count(int64(l.Exports), at("exports")...)
	e.count(int64(l.Globals), at("globals")...)
	e.count(int64(l.DataSegments), at("data_segments")...)
	e.count(int64(l.ElementSegments), at("element_segments")...)
	e.count(int64(l.Tables), at("tables")...)
	e.count(int64(l.TableElements), at("table_elements")...)
	e.count(int64(l.CompileWork), at("compile_work")...)
}

func (e *explainer) server(s Server) {
	e.size(s.MaxBody, "server", "max_body")
	e.count(int64(s.MaxDepth), "server", "max_depth")
	e.duration(s.ShutdownGrace, "server", "shutdown_grace")
	e.count(int64(s.RateLimit.Requests), "server", "rate_limit", "requests")
	e.duration(s.RateLimit.Per, "server", "rate_limit", "per")
	e.count(int64(s.MaxConnections), "server", "max_connections")
	e.count(int64(s.MaxConnectionsPerAddress), "server", "max_connections_per_address")
	e.count(int64(s.MaxStreams), "server", "max_streams")
	e.count(int64(s.MaxStreamsPerPrincipal), "server", "max_streams_per_principal")
}

func (e *explainer) store(s Store) {
	e.span(s.JournalRetention, "store", "journal_retention")
	e.span(s.HistoryRetention, "store", "history_retention")
}

func (e *explainer) agent(a Agent) {
	at := func(key string) []string { return []string{"agents", a.Name, "limits", key} }
	e.run(a.Source, a.Limits, at, func() { e.duration(a.Limits.Turn, at("turn")...) })
	e.count(a.Limits.Tokens, at("tokens")...)
	e.money(a.Limits.USD, at("usd")...)
}

// action lists what bounds one call of an action. One that people answer has no
// bound.
func (e *explainer) action(a Action) {
	if a.Source.Kind == SourceHuman {
		return
	}
	e.duration(a.Timeout, "actions", a.Name, "timeout")
	if a.Source.Kind.Coded() {
		e.run(a.Source, a.Limits, func(key string) []string { return []string{"actions", a.Name, "limits", key} }, func() {})
	}
	if a.Files.Root == "" {
		return
	}
	e.size(a.Files.MaxFile, "actions", a.Name, "max_file")
	if a.Files.Write {
		e.size(a.Files.MaxTotal, "actions", a.Name, "max_total")
	}
}

// run lists the limits of what runs, those of the sandbox only for what is in it. An
// agent's time stands among them.
func (e *explainer) run(s Source, l AgentLimits, at func(key string) []string, time func()) {
	inside := s.Kind != SourceExec
	e.size(l.Memory, at("memory")...)
	time()
	if inside {
		e.duration(l.CPU, at("cpu")...)
		e.count(l.Fuel, at("fuel")...)
	}
	e.size(l.Output, at("output")...)
	if inside {
		e.size(l.Stack, at("stack")...)
	}
	e.count(int64(l.HostCalls), at("host_calls")...)
	e.size(l.HostBytes, at("host_bytes")...)
	e.duration(l.Grace, at("grace")...)
}

// count adds a number; those that may be 0 are unlimited then.
func (e *explainer) count(n int64, path ...string) {
	text := strconv.FormatInt(n, 10)
	if n == 0 {
		text = unlimited
	}
	e.add(text, path)
}

// money adds an amount of dollars; 0 is unlimited.
func (e *explainer) money(n float64, path ...string) {
	text := unlimited
	if n > 0 {
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	e.add(text, path)
}

func (e *explainer) size(n Size, path ...string) { e.add(n.String(), path) }

func (e *explainer) duration(n time.Duration, path ...string) { e.add(shortDuration(n), path) }

// span adds a duration that is unlimited when it is 0.
func (e *explainer) span(n time.Duration, path ...string) {
	text := unlimited
	if n > 0 {
		text = shortDuration(n)
	}
	e.add(text, path)
}

func (e *explainer) add(text string, path []string) {
	at := spot{node: e.c.root}
	for _, name := range path {
		at = at.child(name)
	}
	e.out = append(e.out, Setting{Key: at.path, Value: text, Set: e.c.root != nil && !at.absent})
}
