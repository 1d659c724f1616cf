package recompose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"skep/host/internal/config"
)

// scopes are those of allow.kv, each within the next.
var scopes = []string{"", "task", "agent", "instance"}

// exceeds lists what an agent asks for beyond one agent of the file.
func (f File) exceeds(at string, a, own config.Agent) Refused {
	r := f.wider(at, a.Allow, own.Allow, own.Name)
	r = append(r, over(at, a.Limits, own.Limits, own.Name)...)
	for _, flag := range []struct {
		key        string
		asked, has bool
	}{
		{"enable_entrypoint", a.EnableEntrypoint, own.EnableEntrypoint},
		{"can_complete_tasks", a.CanCompleteTasks, own.CanCompleteTasks},
		{"enable_interswarm", a.EnableInterswarm, own.EnableInterswarm},
	} {
		if flag.asked && !flag.has {
			r = append(r, Reason{at + "." + flag.key, refusal("it", own.Name)})
		}
	}
	r = append(r, missing(at+".expose", a.Expose, own.Expose, own.Name)...)
	remote := slices.DeleteFunc(slices.Clone(a.CommTargets), func(t string) bool { return !strings.Contains(t, "@") })
	r = append(r, missing(at+".comm_targets", remote, own.CommTargets, own.Name)...)
	coded := slices.DeleteFunc(slices.Clone(a.Actions), func(name string) bool { return !f.coded(name) })
	return append(r, missing(at+".actions", coded, own.Actions, own.Name)...)
}

// over lists the limits beyond those of one agent or action of the file.
func over(at string, asked, own config.AgentLimits, name string) (r Refused) {
	section, _, _ := strings.Cut(at, ".")
	for _, l := range limits(asked, own) {
		if l.most > 0 && l.asked > l.most {
			r = append(r, Reason{at + ".limits." + l.key, fmt.Sprintf("more than the %s of %s.%s in the operator's file", l.show(l.most), section, name)})
		}
	}
	return r
}

// wider lists the grants beyond those of one agent or action of the file.
func (f File) wider(at string, a, own config.Allow, name string) Refused {
	r := missing(at+".allow.llm", a.LLM, own.LLM, name)
	r = append(r, missing(at+".allow.secrets", a.Secrets, own.Secrets, name)...)
	for _, g := range a.HTTP {
		if !f.Reaches(slices.Concat(own.HTTP, own.HTTPNoKey), g) {
			r = append(r, Reason{at + ".allow.http", refusal(fmt.Sprintf("%q", g), name)})
		}
	}
	for _, g := range a.HTTPNoKey {
		if !f.Reaches(own.HTTPNoKey, g) {
			r = append(r, Reason{at + ".allow.http_no_key", refusal(fmt.Sprintf("%q", g), name)})
		}
	}
	if slices.Index(scopes, a.KV) > slices.Index(scopes, own.KV) {
		r = append(r, Reason{at + ".allow.kv", refusal(fmt.Sprintf("%q", a.KV), name)})
	}
	if a.HTTPPrivate && !own.HTTPPrivate {
		r = append(r, Reason{at + ".allow.http_private", refusal("it", name)})
	}
	if a.RetryInDoubt && !own.RetryInDoubt {
		r = append(r, Reason{at + ".allow.retry_in_doubt", refusal("it", name)})
	}
	return r
}

func missing(at string, asked, has []string, name string) (r Refused) {
	for _, v := range asked {
		if !slices.Contains(has, v) {
			r = append(r, Reason{at, refusal(fmt.Sprintf("%q", v), name)})
		}
	}
	return r
}

func refusal(what, name string) string {
	return fmt.Sprintf("the operator's file does not grant %s to %q, which runs on this module", what, name)
}

// Narrow returns what is left of a composition that was granted once, by what
// the file grants today. Nothing is refused: tasks were begun with it, and they can
// still come to their end. Own says that it was the operator's, whose agents keep
// their names when their modules change.
func (f File) Narrow(x config.Composition, own bool) config.Composition {
	begun := x
	x.Swarm.EnableInterswarm = x.Swarm.EnableInterswarm && f.Config.Swarm.EnableInterswarm
	x.Swarm.AllowAgentDiscovery = x.Swarm.AllowAgentDiscovery && f.Config.Swarm.AllowAgentDiscovery
	x.Agents, x.Actions = slices.Clone(x.Agents), slices.Clone(x.Actions)
	for i := range x.Agents {
		a := &x.Agents[i]
		today, ok := f.today(*a, own)
		if !ok {
			stayHome(a)
			continue
		}
		a.Allow = f.narrowAllow(a.Allow, today.Allow)
		a.Limits = narrowLimits(a.Limits, today.Limits)
		f.narrowPart(a, today)
	}
	f.narrowActions(x)
	finishable(x, begun)
	return x
}

// today finds the agent of the file that an older one is held against.
func (f File) today(a config.Agent, own bool) (config.Agent, bool) {
	if named, ok := f.Config.Agent(a.Name); own && ok {
		return named, true
	}
	a.Source = config.Source{} // the module decides
	return f.yardstick(a)
}

func (f File) narrowAllow(a, own config.Allow) config.Allow {
	within := func(asked, has []string) []string {
		return slices.DeleteFunc(slices.Clone(asked), func(v string) bool { return !slices.Contains(has, v) })
	}
	reached := func(asked, grants []string) []string {
		return slices.DeleteFunc(slices.Clone(asked), func(g string) bool { return !f.Reaches(grants, g) })
	}
	return config.Allow{
		LLM: within(a.LLM, own.LLM), Secrets: within(a.Secrets, own.Secrets),
		HTTP:         reached(a.HTTP, slices.Concat(own.HTTP, own.HTTPNoKey)),
		HTTPNoKey:    reached(a.HTTPNoKey, own.HTTPNoKey),
		HTTPPrivate:  a.HTTPPrivate && own.HTTPPrivate,
		KV:           scopes[max(0, min(slices.Index(scopes, a.KV), slices.Index(scopes, own.KV)))],
		RetryInDoubt: a.RetryInDoubt && own.RetryInDoubt,
	}
}

// least is a limit that is asked for within another one; 0 asks for all, and a
// most of 0 has no end.
func least[T cmp.Ordered](asked, most T) T {
	var none T
	switch {
	case asked == none:
		return most
	case most == none:
		return asked
	}
	return min(asked, most)
}

func narrowLimits(a, own config.AgentLimits) config.AgentLimits {
	return config.AgentLimits{
		Memory: least(a.Memory, own.Memory), Turn: least(a.Turn, own.Turn), CPU: least(a.CPU, own.CPU),
		Fuel: least(a.Fuel, own.Fuel), Output: least(a.Output, own.Output), Stack: least(a.Stack, own.Stack),
		HostCalls: least(a.HostCalls, own.HostCalls), HostBytes: least(a.HostBytes, own.HostBytes), Grace: least(a.Grace, own.Grace),
		Tokens: least(a.Tokens, own.Tokens), USD: least(a.USD, own.USD),
	}
}

// micro is an amount in millionths.
func micro(usd float64) int64 { return int64(math.Ceil(usd * 1e6)) }

// limit is one limit of two agents.
type limit struct {
	key         string
	asked, most int64
	show        func(int64) string
}

func limits(a, own config.AgentLimits) []limit {
	size := func(n int64) string { return config.Size(n).String() }
	span := func(n int64) string { return time.Duration(n).String() }
	count := func(n int64) string { return fmt.Sprint(n) }
	return []limit{
		{"memory", int64(a.Memory), int64(own.Memory), size},
		{"turn", int64(a.Turn), int64(own.Turn), span},
		{"cpu", int64(a.CPU), int64(own.CPU), span},
		{"fuel", a.Fuel, own.Fuel, count},
		{"output", int64(a.Output), int64(own.Output), size},
		{"stack", int64(a.Stack), int64(own.Stack), size},
		{"host_calls", int64(a.HostCalls), int64(own.HostCalls), count},
		{"host_bytes", int64(a.HostBytes), int64(own.HostBytes), size},
		{"grace", int64(a.Grace), int64(own.Grace), span},
		{"tokens", a.Tokens, own.Tokens, count},
		{"usd", micro(a.USD), micro(own.USD), func(n int64) string { return fmt.Sprint(float64(n) / 1e6) }},
	}
}
