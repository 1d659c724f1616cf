package plan

import (
	"reflect"
	"slices"
	"strings"

	"skep/host/internal/config"
)

// swarmWider is when a key of [swarm] allows more.
func swarmWider(key string) func(before, after any) bool {
	switch key {
	case "public", "enable_interswarm", "allow_agent_discovery":
		return on
	case "breakpoint_tools", "exclude_tools":
		return lost
	}
	return never
}

func on(before, after any) bool { return after == true && before != true }

func lost(before, after any) bool { return gained(after, before) }

// agentWider is when an agent may do more. One that is new may do something.
func agentWider(before, after any) bool {
	b, had := before.(map[string]any)
	a, _ := after.(map[string]any)
	if !had {
		return true
	}
	for _, key := range []string{"enable_entrypoint", "can_complete_tasks", "enable_interswarm", "trusted"} {
		if on(b[key], a[key]) {
			return true
		}
	}
	for _, key := range []string{"comm_targets", "actions", "expose", "readable"} {
		if gained(b[key], a[key]) {
			return true
		}
	}
	return lost(b["exclude_tools"], a["exclude_tools"])
}

// actionWider is when an action may do more. One whose limits change might.
func actionWider(before, after any) bool {
	b, had := before.(map[string]any)
	a, _ := after.(map[string]any)
	return !had || repinned(b, a) || on(b["trusted"], a["trusted"]) || gained(b["readable"], a["readable"]) ||
		gained(b["actions"], a["actions"]) || !reflect.DeepEqual(b["limits"], a["limits"])
}

// repinned reports whether an action has another tool than the one that was
// approved before.
func repinned(b, a map[string]any) bool {
	source, _ := a["source"].(string)
	return strings.HasPrefix(source, string(config.SourceMCP)+":") && b["sha256"] != a["sha256"]
}

// serverWider is when another program runs or another server is reached, or with
// other rights.
func serverWider(before, after any) bool {
	b, had := before.(map[string]any)
	a, _ := after.(map[string]any)
	return !had || on(b["trusted"], a["trusted"]) || on(b["allow_private"], a["allow_private"]) || b["url"] != a["url"] ||
		!reflect.DeepEqual(b["command"], a["command"]) || !reflect.DeepEqual(b["env"], a["env"])
}

// peerWider is when mail may go where it could not, or comes in less well proven.
func peerWider(before, after any) bool {
	b, had := before.(map[string]any)
	a, _ := after.(map[string]any)
	return !had || b["base_url"] != a["base_url"] || on(b["allow_private"], a["allow_private"]) ||
		b["verify_key"] != "" && b["verify_key"] != a["verify_key"]
}

// scopes are those of allow.kv, each within the next.
var scopes = []string{"", "task", "agent", "instance"}

// grants are those of an agent or action that are given at all.
func grants(of string, a config.Allow, reaches Reaches) (out []item) {
	list := func(key string, has []string, wider func(before, after any) bool) {
		if len(has) > 0 {
			v := make([]any, len(has))
			for i, one := range has {
				v[i] = one
			}
			out = append(out, item{kind: "grant", name: of + "." + key, shown: v, exact: v, wider: wider})
		}
	}
	web := func(before, after any) bool {
		had := strs(before)
		return slices.ContainsFunc(strs(after), func(g string) bool { return !reaches(had, g) })
	}
	list("llm", a.LLM, gained)
	list("http", a.HTTP, web)
	list("http_no_key", a.HTTPNoKey, web)
	list("secrets", a.Secrets, gained)
	if a.KV != "" {
		out = append(out, item{kind: "grant", name: of + ".kv", shown: a.KV, exact: a.KV, wider: func(before, after any) bool {
			b, _ := before.(string)
			k, _ := after.(string)
			return slices.Index(scopes, k) > slices.Index(scopes, b)
		}})
	}
	if a.HTTPPrivate {
		out = append(out, item{kind: "grant", name: of + ".http_private", shown: true, exact: true, wider: on})
	}
	return append(out, item{kind: "grant", name: of + ".retry_in_doubt", shown: a.RetryInDoubt, exact: a.RetryInDoubt, wider: retries, always: true})
}

// files are what a file action reaches and how much it may move. Another root is a
// wider one: who compares has not seen what is in it.
func files(of string, f config.Files) (out []item) {
	if f.Root == "" {
		return nil
	}
	out = append(out, item{kind: "grant", name: of + ".root", shown: f.Root, exact: f.Root, wider: func(before, after any) bool { return before != after }})
	for _, flag := range []struct {
		key string
		set bool
	}{{"shared", f.Shared}, {"write", f.Write}} {
		if flag.set {
			out = append(out, item{kind: "grant", name: of + "." + flag.key, shown: true, exact: true, wider: on})
		}
	}
	size := func(key string, n config.Size) {
		out = append(out, item{kind: "limit", name: of + "." + key, shown: n.String(), exact: n.String(), always: true,
			wider: func(before, _ any) bool {
				return before != nil && config.Setting{Value: n.String()}.Amount() > amount(before)
			}})
	}
	size("max_file", f.MaxFile)
	if f.Write {
		size("max_total", f.MaxTotal)
	}
	return out
}

func retries(before, after any) bool { return before == false && after == true }

// limits are those of turns, tasks and modules.
func limits(c *config.Config) (out []item) {
	for _, s := range config.Explain(c) {
		if !strings.HasPrefix(s.Key, "limits.") && !strings.HasPrefix(s.Key, "agents.") {
			continue
		}
		out = append(out, item{
			kind: "limit", name: s.Key, shown: s.Value, exact: s.Value, always: true,
			wider:   func(before, _ any) bool { return before != nil && s.Amount() > amount(before) },
			restart: strings.HasPrefix(s.Key, "limits.module.") || s.Key == "limits.turns" || s.Key == "limits.process_idle",
		})
	}
	return out
}

func amount(shown any) float64 {
	text, _ := shown.(string)
	return config.Setting{Value: text}.Amount()
}
