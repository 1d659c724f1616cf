package definition

import (
	"context"
	"fmt"
	"slices"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/quarantine"
	"skep/host/internal/swarm"
)

// quarantineTime bounds how long a change of the quarantine waits for its store, as reads do.
const quarantineTime = 30 * time.Second

// agentQuarantine implements the runtime's port: it adds the module of an agent to the list.
type agentQuarantine struct{ l *Library }

var (
	_ swarm.Quarantine = agentQuarantine{}
	_ swarm.RunSet     = (*quarantine.RunningSet)(nil)
)

// Quarantine is the quarantine of the runtime's agents.
func (l *Library) Quarantine() swarm.Quarantine { return agentQuarantine{l} }

// Confined lists the agents in quarantine.
func (l *Library) Confined() []quarantine.Confined { return l.opt.Quarantine.Agents() }

// Reason returns the reason why an agent is in quarantine.
func (q agentQuarantine) Reason(tenant, name, agent string) (string, bool) {
	return q.l.opt.Quarantine.Reason(quarantine.Agent{Tenant: tenant, Swarm: name, Name: agent})
}

// Confine puts an agent in quarantine, with the module it ran on.
func (q agentQuarantine) Confine(tenant, name, agent, definition, why string) error {
	a := quarantine.Agent{Tenant: tenant, Swarm: name, Name: agent}
	ctx, cancel := context.WithTimeout(context.Background(), quarantineTime)
	defer cancel()
	return q.l.opt.Quarantine.Confine(ctx, a, q.l.moduleOf(definition, agent), why, time.Now())
}

// Release ends the quarantine of an agent.
func (q agentQuarantine) Release(tenant, name, agent string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), quarantineTime)
	defer cancel()
	return q.l.opt.Quarantine.Release(ctx, quarantine.Agent{Tenant: tenant, Swarm: name, Name: agent})
}

// checkQuarantine refuses a definition that gives the module of an agent in quarantine to
// an agent that has it neither in what is in force nor in the file. The caller holds
// l.change.
func (l *Library) checkQuarantine(tenant string, r *runnable) error {
	known := slices.Concat(l.own.composition.Agents, l.inForce(tenant).composition.Agents)
	confined := slices.DeleteFunc(l.opt.Quarantine.Agents(), func(q quarantine.Confined) bool {
		return q.Tenant != tenant || q.Swarm != r.def.Name
	})
	for _, a := range r.composition.Agents {
		on := slices.DeleteFunc(slices.Clone(confined), func(q quarantine.Confined) bool { return !ranOn(q, a.SHA256, known) })
		had := slices.ContainsFunc(known, func(k config.Agent) bool { return k.Name == a.Name && k.SHA256 == a.SHA256 })
		itself := slices.ContainsFunc(on, func(q quarantine.Confined) bool { return q.Name == a.Name })
		if len(on) > 0 && !had && !itself {
			return &swarm.Refusal{Kind: swarm.ErrInvalid, Text: fmt.Sprintf(
				"agents.%s: agent %q of the same module is in quarantine; an operator may release it", a.Name, on[0].Name)}
		}
	}
	return nil
}

// ranOn reports whether an agent came into quarantine on a module. For an entry without a
// module it is the module that the agent runs on now, if the agent is known.
func ranOn(q quarantine.Confined, module string, known []config.Agent) bool {
	if q.Module != "" {
		return q.Module == module
	}
	return module != "" && slices.ContainsFunc(known, func(k config.Agent) bool { return k.Name == q.Name && k.SHA256 == module })
}
