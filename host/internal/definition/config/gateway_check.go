package config

import (
	"cmp"
	"fmt"
	"slices"

	"skep/host/internal/spelling"
)

// checkExposure holds what agents expose, and what partners may see of it, against the
// gateways of the file.
func (d *decoder) checkExposure(t *table, c *Config, drafts []*draft) {
	for _, a := range drafts {
		for i, name := range a.Expose {
			at := a.at.child("expose").elem(i)
			kind, known := d.protocol(name)
			d.needs(gatewayCapability(name), at)
			switch {
			case !known: // a fault already
			case !slices.ContainsFunc(c.Gateways, func(g Gateway) bool { return g.Name == name }):
				d.atValue(at, fmt.Sprintf("%s names %q, and there is no [gateways.%s]", a.at.child("expose").path, name, name))
			case kind.users && !a.EnableEntrypoint:
				d.warn(at, fmt.Sprintf("%s names %q, and the agent is no entrypoint: partners reach it there, and users do not; set enable_entrypoint = true for them", a.at.child("expose").path, name))
			}
		}
	}
	for _, g := range c.Gateways {
		d.checkCallers(t.child("gateways").child(g.Name), g, drafts)
		for _, p := range g.Partners {
			d.checkVisible(t.child("gateways").child(g.Name).child("partners").child(p.Name).child("agents"), p, drafts)
		}
	}
}

// checkCallers warns of a gateway without callers, and of callers that find no agent. A
// tenant's own definition may have agents for them.
func (d *decoder) checkCallers(at location, g Gateway, drafts []*draft) {
	kind, _ := d.protocol(g.Name)
	exposed := slices.ContainsFunc(drafts, func(a *draft) bool { return slices.Contains(a.Expose, g.Name) })
	asks := slices.ContainsFunc(g.Partners, func(p Partner) bool {
		return slices.Contains(p.May, "ask") || slices.Contains(p.May, "tell")
	})
	others := kind.users || len(g.Admit) > 0
	why := fmt.Sprintf("no agent of this file exposes itself through %q, so callers reach none; add expose = [%q] to an agent", g.Name, g.Name)
	switch {
	case !others && len(g.Partners) == 0:
		d.warn(at, fmt.Sprintf("%s has no partner, so no message comes or goes; add [%s.partners.NAME]", at.path, at.path))
	case !exposed && others:
		d.warn(at, why)
	case !exposed && asks:
		d.warn(at, why+", or may = [] to partners that only answer")
	}
}

// checkSpeakers warns of agents' keys that speak for a name like a peer's or a partner's:
// a name that is unlike all of them may be a swarm that registers later.
func (d *decoder) checkSpeakers(t *table, c *Config) {
	var known []string
	for _, p := range c.Peers {
		known = append(known, p.Name)
	}
	for _, g := range c.Gateways {
		for _, p := range g.Partners {
			known = append(known, p.Name)
		}
	}
	for i, k := range c.Auth.Keys {
		name := cmp.Or(k.Peer, k.ID)
		near := spelling.Nearest(name, known)
		if k.Role != RoleAgent || near == "" || slices.Contains(known, name) {
			continue
		}
		at := t.child("auth").child("keys").elem(i)
		d.warn(at, fmt.Sprintf("%s speaks for %q, which is no peer and no partner; did you mean %q?", at.path, name, near))
	}
}

// checkVisible warns of agents that a partner is to see and that the file does not expose
// to it. A tenant's own definition may have them.
func (d *decoder) checkVisible(at location, p Partner, drafts []*draft) {
	for i, name := range p.Agents {
		exposed := slices.ContainsFunc(drafts, func(a *draft) bool { return a.Name == name && slices.Contains(a.Expose, p.Gateway) })
		if !exposed {
			d.warn(at.elem(i), fmt.Sprintf("%s: no agent %q of this file exposes itself through %q, so %s sees none", at.elem(i).path, name, p.Gateway, p.Name))
		}
	}
}
