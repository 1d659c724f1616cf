package narrowing

import (
	"slices"
	"strings"

	"skep/host/internal/definition/config"
	"skep/spec/mail"
)

// narrowPart leaves an agent the part in the swarm that one of the file has today.
// The composition decides to whom it may write in its own swarm: the file may have
// other names for these agents by now.
func (f File) narrowPart(a *config.Agent, today config.Agent) {
	a.EnableEntrypoint = a.EnableEntrypoint && today.EnableEntrypoint
	a.CanCompleteTasks = a.CanCompleteTasks && today.CanCompleteTasks
	a.EnableInterswarm = a.EnableInterswarm && today.EnableInterswarm && f.Config.Swarm.EnableInterswarm
	a.CommTargets = narrowTargets(a.CommTargets, today.CommTargets)
	a.Expose = slices.DeleteFunc(slices.Clone(a.Expose), func(gateway string) bool { return !slices.Contains(today.Expose, gateway) })
	a.ExcludeTools = withAll(a.ExcludeTools, today.ExcludeTools)
}

// keepLocal leaves an agent that the file does not have any more its part in its own
// swarm alone.
func (f File) keepLocal(a *config.Agent) {
	a.Allow = config.Allow{}
	a.EnableInterswarm = false
	a.Expose = nil
	a.CommTargets = narrowTargets(a.CommTargets, nil)
	a.ExcludeTools = withAll(a.ExcludeTools, f.Config.Swarm.ExcludeTools)
}

// narrowTargets keeps the targets in the own swarm, and of those in other swarms
// what is also within one of today's.
func narrowTargets(asked, today []string) (kept []string) {
	for _, target := range asked {
		name, swarm, remote := strings.Cut(target, "@")
		if !remote {
			kept = append(kept, target)
			continue
		}
		for _, t := range today {
			todayName, todaySwarm, remote := strings.Cut(t, "@")
			both, ok := overlap(name, todayName)
			bothSwarm, okSwarm := overlap(swarm, todaySwarm)
			if both += "@" + bothSwarm; remote && ok && okSwarm && !slices.Contains(kept, both) {
				kept = append(kept, both)
			}
		}
	}
	return kept
}

// overlap returns what two names have in common, of which a star is any name.
func overlap(a, b string) (both string, ok bool) {
	if a == "*" {
		return b, true
	}
	return a, b == a || b == "*"
}

// finishable gives back what a task cannot come to its end without: an agent that its
// owner can answer, and one that can complete it. Neither reaches out of the swarm.
func finishable(x, begun config.Composition) {
	completes := slices.ContainsFunc(x.Agents, func(a config.Agent) bool { return a.CanCompleteTasks })
	for i, was := range begun.Agents {
		a := &x.Agents[i]
		a.EnableEntrypoint = a.EnableEntrypoint || was.EnableEntrypoint && a.Name == x.Swarm.Entrypoint
		if was.CanCompleteTasks && !completes {
			a.CanCompleteTasks = true
			a.ExcludeTools = slices.DeleteFunc(a.ExcludeTools, func(tool string) bool { return tool == mail.ToolTaskComplete })
		}
	}
}

// narrowActions leaves the actions with code what the file gives them today, and
// nothing to one that the file has no more. Params of a composition that is not the
// operator's are the file's: it may be older than the refusal of other ones.
func (f File) narrowActions(x config.Composition, own bool) {
	for i := range x.Actions {
		a := &x.Actions[i]
		if a.Source.Kind == config.SourceHuman {
			continue
		}
		at := slices.IndexFunc(f.Config.Actions, func(own config.Action) bool { return own.Name == a.Name && f.coded(own.Name) })
		var today config.Action
		if at >= 0 {
			today = f.Config.Actions[at]
		}
		if !own {
			a.Params = today.Params
		}
		if at < 0 {
			a.Allow, a.Actions, a.Files, a.Partners = config.Allow{}, nil, config.Files{}, nil
			if a.Source.Kind == config.SourceMCP {
				a.Source.Ref = "" // the tool is granted by its name
			}
			continue
		}
		if a.Files, a.Partners = (config.Files{}), nil; a.Source == today.Source {
			a.Files, a.Partners = today.Files, today.Partners
		}
		a.Allow = f.narrowAllow(a.Allow, today.Allow)
		a.Limits, a.Timeout = narrowLimits(a.Limits, today.Limits), min(a.Timeout, today.Timeout)
		a.Actions = slices.DeleteFunc(slices.Clone(a.Actions), func(name string) bool {
			return f.coded(name) && !slices.Contains(today.Actions, name)
		})
	}
}
