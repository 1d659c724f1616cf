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

func (d *decoder) swarm(t *table) Swarm {
	if t.values == nil {
		d.report(t.node.key, "swarm", "[swarm] is missing; it needs name and entrypoint")
	} else if !t.has("name") {
		t.missing("name", "")
	}
	if name, ok := t.value("name"); ok {
		d.checkName(name, "the swarm", true)
	}
	s := Swarm{
		Name:                t.text("name", ""),
		Version:             t.text("version", ""),
		Description:         t.text("description", ""),
		Keywords:            t.texts("keywords"),
		Public:              t.boolean("public", false),
		Entrypoint:          t.text("entrypoint", ""),
		BreakpointTools:     t.texts("breakpoint_tools"),
		ExcludeTools:        t.tools("exclude_tools"),
		EnableInterswarm:    t.boolean("enable_interswarm", false),
		AllowAgentDiscovery: t.boolean("allow_agent_discovery", false),
		InterruptMode:       t.oneOf("interrupt_mode", InterruptQueue, InterruptQueue, InterruptPreempt),
		Pos:                 d.pos(t.spot),
	}
	t.needs("interswarm", "enable_interswarm")
	if s.AllowAgentDiscovery && !s.EnableInterswarm {
		d.atKey(t.child("allow_agent_discovery"), "swarm.allow_agent_discovery has no effect without enable_interswarm = true in [swarm]")
	}
	t.done()
	return s
}

// tools reads names of MAIL tools.
func (t *table) tools(key string) []string {
	items := t.list(key)
	for _, v := range items {
		if !slices.Contains(mail.Tools(), v.text) {
			f := t.d.atValue(v.spot, fmt.Sprintf("%s is not a MAIL tool", v.shown))
			f.near(v.text, mail.Tools())
		}
	}
	return textsOf(items)
}
