package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/definition/config"
)

// grantee is an agent or action of a file, with what the file grants it.
type grantee struct {
	section, name string
	allow         config.Allow
	limits        config.AgentLimits
	params        json.RawMessage
}

func agentGrantee(a config.Agent) grantee {
	return grantee{"agents", a.Name, a.Allow, a.Limits, a.Params}
}

func actionGrantee(a config.Action) grantee {
	return grantee{"actions", a.Name, a.Allow, a.Limits, a.Params}
}

// table is the grantee's table in the file.
func (g grantee) table() string { return "[" + g.section + "." + g.name + "]" }

// grantees are all agents and coded actions of a file.
func grantees(cfg *config.Config) (all []grantee) {
	for _, a := range cfg.Agents {
		all = append(all, agentGrantee(a))
	}
	for _, a := range codedActions(cfg.Actions) {
		all = append(all, actionGrantee(a))
	}
	return all
}

// codedActions are the actions that have a module or program.
func codedActions(actions []config.Action) []config.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a config.Action) bool { return !a.Source.Kind.Coded() })
}

// asAgent is an action in the form in which modules are loaded.
func asAgent(a config.Action) config.Agent {
	return config.Agent{Name: a.Name, Source: a.Source, SHA256: a.SHA256, Trusted: a.Trusted, Readable: a.Readable, Limits: a.Limits}
}

// Executables are the agents of a composition, and its coded actions as agents named by
// their [moduleKey].
func Executables(x config.Composition) []config.Agent {
	all := slices.Clone(x.Agents)
	for _, a := range codedActions(x.Actions) {
		one := asAgent(a)
		one.Name = moduleKey(a.Name)
		all = append(all, one)
	}
	return all
}

// moduleKey names the module of an action among the modules of agents, whose names have
// no slash.
func moduleKey(action string) string { return "actions/" + action }

// describeKey is what a module key stands for, in error texts.
func describeKey(key string) string {
	if action, ok := strings.CutPrefix(key, moduleKey("")); ok {
		return fmt.Sprintf("action %q", action)
	}
	return fmt.Sprintf("agent %q", key)
}
