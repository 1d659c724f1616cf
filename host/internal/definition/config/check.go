package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"skep/host/internal/spelling"
	"skep/spec/mail"
)

// roster is the agents by name and in the order of the file.
type roster struct {
	names  []string
	byName map[string]*draft
}

func newRoster(drafts []*draft) roster {
	r := roster{byName: map[string]*draft{}}
	for _, a := range drafts {
		r.names = append(r.names, a.Name)
		r.byName[a.Name] = a
	}
	return r
}

// checkSwarm checks the agents against each other and against the swarm.
func (d *decoder) checkSwarm(c *Config, t *table, drafts []*draft) {
	if _, isTable := t.values["agents"].(map[string]any); !isTable {
		if !t.has("agents") {
			d.report(t.node.key, "agents", "[agents] is missing; a swarm needs at least one agent")
		}
		return
	}
	r := newRoster(drafts)
	for _, a := range drafts {
		d.checkTargets(a, c.Swarm, r)
		d.checkEnds(a)
	}
	d.checkPeers(c, drafts)
	swarm := t.table("swarm")
	d.checkEntrypoint(swarm, r)
	d.checkCompletion(swarm, drafts)
	d.checkBreakpoints(swarm, c.Actions)
	d.checkReach(r)
}

// checkTargets resolves an agent's comm_targets.
func (d *decoder) checkTargets(a *draft, s Swarm, r roster) {
	seen := map[string]bool{}
	for _, v := range a.targets {
		target, swarm, remote := strings.Cut(v.text, "@")
		if remote && swarm != s.Name {
			d.checkRemote(a, s, v, target, swarm)
			target = v.text
		} else if r.byName[target] == nil {
			f := d.atValue(v.location, fmt.Sprintf("unknown agent %s in %s.comm_targets", v.shown, a.at.path))
			f.near(target, r.names)
			continue
		}
		if seen[target] {
			d.atValue(v.location, fmt.Sprintf("%s is listed twice", v.shown))
			continue
		}
		seen[target] = true
		a.CommTargets = append(a.CommTargets, target)
	}
}

func (d *decoder) checkRemote(a *draft, s Swarm, v value, target, swarm string) {
	if _, missing := d.unimplemented["interswarm"]; missing {
		d.needs("interswarm", v.location)
		return
	}
	name := v
	name.text = target
	d.checkName(name, "an agent", false)
	name.text = swarm
	d.checkName(name, "a swarm", true)
	if !s.EnableInterswarm || !a.EnableInterswarm {
		d.atValue(v.location, fmt.Sprintf("%s is in another swarm; that needs enable_interswarm = true in [swarm] and in [%s]", v.shown, a.at.path))
	}
}

// checkPeers warns, once for each swarm, of targets in a swarm that the file does not
// say how to reach, with the one of a like name that it has.
func (d *decoder) checkPeers(c *Config, drafts []*draft) {
	known := map[string]bool{"*": true, c.Swarm.Name: true}
	for _, p := range c.Peers {
		known[p.Name] = true
	}
	for _, g := range c.Gateways {
		for _, p := range g.Partners {
			known[p.Name] = true
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, a := range drafts {
		for _, v := range a.targets {
			_, swarm, remote := strings.Cut(v.text, "@")
			if !remote || known[swarm] || d.remote != nil {
				continue
			}
			known[swarm] = true
			why := fmt.Sprintf("%s: this file has no [peers.%s]; until `skep peer add %s` makes it known to the running host, nothing reaches %s", v.path, swarm, swarm, v.shown)
			if near := spelling.Nearest(swarm, names); near != "" {
				why += fmt.Sprintf("; did you mean %q?", v.text[:strings.Index(v.text, "@")+1]+near)
			}
			d.warn(v.location, why)
		}
	}
}

// checkEnds finds agents that can do nothing with what they receive. An exposed agent
// answers the partners that ask it.
func (d *decoder) checkEnds(a *draft) {
	if a.CanCompleteTasks && slices.Contains(a.ExcludeTools, mail.ToolTaskComplete) {
		d.atKey(a.at.child("can_complete_tasks"), fmt.Sprintf("%s.can_complete_tasks has no effect: exclude_tools takes task_complete away", a.at.path))
	}
	if !a.at.isSet("comm_targets") && !a.at.isSet("can_complete_tasks") && len(a.Expose) == 0 {
		d.atKey(a.at.location, fmt.Sprintf("%s is a dead end: it has no comm_targets and cannot complete tasks", a.at.path))
	}
}

func (d *decoder) checkEntrypoint(t *table, r roster) {
	v, ok := t.value("entrypoint")
	if !ok {
		if t.values != nil && !t.has("entrypoint") {
			d.report(t.node.key, "swarm.entrypoint", "swarm.entrypoint is missing; it names the agent that gets what users post")
		}
		return
	}
	entry := r.byName[v.text]
	if entry == nil {
		f := d.atValue(v.location, fmt.Sprintf("the entrypoint %s is not an agent of this file", v.shown))
		f.near(v.text, r.names)
		return
	}
	if !entry.at.isSet("enable_entrypoint") {
		d.atValue(v.location, fmt.Sprintf("the entrypoint %s needs enable_entrypoint = true in [%s]", v.shown, entry.at.path))
	}
}

func (d *decoder) checkCompletion(t *table, drafts []*draft) {
	if slices.ContainsFunc(drafts, func(a *draft) bool { return a.at.isSet("can_complete_tasks") }) {
		return
	}
	d.atKey(t.location, "no agent can complete a task; set can_complete_tasks = true for one")
}

func (d *decoder) checkBreakpoints(t *table, actions []Action) {
	known := mail.Tools()
	for _, a := range actions {
		known = append(known, a.Name)
	}
	for _, v := range t.list("breakpoint_tools") {
		if !slices.Contains(known, v.text) {
			f := d.atValue(v.location, fmt.Sprintf("%s is neither a MAIL tool nor an action of this file", v.shown))
			f.near(v.text, known)
		}
	}
}

// scriptAgent is the bundled agent that does what its messages say.
const scriptAgent = "script"

// checkReach warns of agents that no message can reach except a broadcast, and of
// grants that a message can use.
func (d *decoder) checkReach(r roster) {
	reached := map[string]bool{}
	var queue []string
	for _, name := range r.names {
		if r.byName[name].EnableEntrypoint {
			queue = append(queue, name)
		}
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if reached[name] || r.byName[name] == nil {
			continue
		}
		reached[name] = true
		queue = append(queue, r.byName[name].CommTargets...)
	}
	for _, name := range r.names {
		a := r.byName[name]
		switch {
		case !reached[name]:
			d.warn(a.at.location, fmt.Sprintf("no entrypoint reaches the agent %q through comm_targets", name))
		case a.Source.Kind == SourceBundled && a.Source.Ref == scriptAgent && a.Allow.any():
			d.warn(a.at.child("allow"), fmt.Sprintf("the agent %q does what its messages say: whoever can write to it has its grants", name))
		}
	}
}
