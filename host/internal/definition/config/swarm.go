package config

import (
	"fmt"
	"slices"

	"skep/spec/mail"
)

// Swarm is the [swarm] table.
type Swarm struct {
	Name             string
	Version          string
	Description      string
	Keywords         []string
	Public           bool   // listed in GET /swarms
	Entrypoint       string // an agent with EnableEntrypoint
	BreakpointTools  []string
	ExcludeTools     []string // MAIL tools no agent gets
	EnableInterswarm bool
	// AllowAgentDiscovery lets supervisors look for other swarms in anybody's tasks.
	AllowAgentDiscovery bool
	InterruptMode       string // InterruptQueue or InterruptPreempt
	Pos                 Pos
}

// Values of [Swarm.InterruptMode].
const (
	InterruptQueue   = "queue"
	InterruptPreempt = "preempt"
)

// Settings are in the order of a composition's JSON, by whose digest it is known.
func (s *Swarm) Settings() []Setting {
	return []Setting{
		text(&s.Name, "name", "What the swarm is called, here and by others; a definition over the network has the same.").needed("").restarts(),
		text(&s.Version, "version", "Its version, for readers."),
		text(&s.Description, "description", "What it does, for readers."),
		field(&s.Keywords, "keywords", "list of strings", (*table).texts, "Words by which others look for it."),
		boolean(&s.Public, "public", false, "It is listed in `GET /swarms`.").by(Grant),
		text(&s.Entrypoint, "entrypoint", "The agent that gets what users post.").neededElsewhere(),
		field(&s.BreakpointTools, "breakpoint_tools", "list of tools", (*table).texts, "MAIL tools and actions whose calls wait for a person.").by(Except),
		field(&s.ExcludeTools, "exclude_tools", "list of MAIL tools", (*table).tools, "MAIL tools that no agent gets.").by(Except),
		boolean(&s.EnableInterswarm, "enable_interswarm", false, "Agents may write to other swarms.").by(Grant).planned("interswarm"),
		boolean(&s.AllowAgentDiscovery, "allow_agent_discovery", false, "Supervisors may look for other swarms in everybody's tasks.").by(Grant),
		choice(&s.InterruptMode, "interrupt_mode", InterruptQueue, []string{InterruptQueue, InterruptPreempt}, "An interrupt waits for the running turn (`queue`) or calls it off (`preempt`)."),
	}
}

func (d *decoder) swarm(t *table) Swarm {
	if t.values == nil {
		d.report(t.node.key, "swarm", "[swarm] is missing; it needs name and entrypoint")
	}
	s := Swarm{Pos: d.pos(t.location)}
	t.read(s.Settings())
	if name, ok := t.value("name"); ok {
		d.checkName(name, "the swarm", true)
	}
	if s.AllowAgentDiscovery && !s.EnableInterswarm {
		d.atKey(t.child("allow_agent_discovery"), "swarm.allow_agent_discovery has no effect without enable_interswarm = true in [swarm]")
	}
	t.refuseUnknown()
	return s
}

// tools reads names of MAIL tools.
func (t *table) tools(key string) []string {
	items := t.list(key)
	for _, v := range items {
		if !slices.Contains(mail.Tools(), v.text) {
			f := t.d.atValue(v.location, fmt.Sprintf("%s is not a MAIL tool", v.shown))
			f.near(v.text, mail.Tools())
		}
	}
	return textsOf(items)
}
