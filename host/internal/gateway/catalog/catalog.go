// Package catalog owns what one gateway shows and whom it calls, by the configuration in
// force: the exposed agents that a caller sees, and the partners of the file with their
// HTTP clients. It must not know any protocol, nor tasks.
package catalog

import (
	"slices"
	"strings"
	"sync"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

// Definitions are the definitions of a host.
type Definitions interface {
	// Exposed lists the agents that a tenant's definition in force shows through a gateway.
	Exposed(tenant, gateway string) []definition.ExposedAgent
	// Config is the configuration in force; a reload puts another one in its place.
	Config() *config.Config
}

// Options of [New].
type Options struct {
	// Gateway is the name of the gateway's table.
	Gateway     string
	Definitions Definitions
	// HTTP2 is for a protocol of HTTP/2: partners at https URLs are called by it alone.
	HTTP2 bool
	// Network changes how partners are called; nil changes nothing.
	Network func(*egress.Options)
}

// Catalog is the part of a [gateway.Runtime] that the configuration decides. It is safe
// for concurrent use. Close it.
type Catalog struct {
	opt    Options
	client *egress.Client

	mu sync.Mutex
	// partners are made from the configuration of. replaced is closed when they are made anew.
	partners map[string]gateway.Partner
	of       *config.Config
	replaced chan struct{}
}

// New returns the catalog of a gateway. It starts nothing.
func New(opt Options) *Catalog {
	return &Catalog{opt: opt, client: newEgress(opt.Network)}
}

// Close ends the connections to partners that are idle.
func (c *Catalog) Close() { c.client.Close() }

// Settings are the gateway's table in force; ok is false without one.
func (c *Catalog) Settings() (g config.Gateway, ok bool) {
	return tableOf(c.opt.Definitions.Config(), c.opt.Gateway)
}

func tableOf(cfg *config.Config, name string) (g config.Gateway, ok bool) {
	i := slices.IndexFunc(cfg.Gateways, func(g config.Gateway) bool { return g.Name == name })
	if i < 0 {
		return g, false
	}
	return cfg.Gateways[i], true
}

// ExposedAgents lists what a caller may see: a user the entrypoints of his tenant, a realm
// what its partner's table leaves of it. A caller without a credential, who reads a public
// card, sees what a user of the default tenant does.
func (c *Catalog) ExposedAgents(caller gateway.Caller) (list []gateway.ExposedAgent) {
	if caller.Principal.Role == "" {
		caller.Principal.Tenant = swarm.DefaultTenant
	}
	sees := c.visible(caller)
	return slices.DeleteFunc(c.Exposed(caller.Principal.Tenant), func(a gateway.ExposedAgent) bool { return !sees(a) })
}

// Exposed lists all agents that a tenant exposes.
func (c *Catalog) Exposed(tenant string) (list []gateway.ExposedAgent) {
	for _, a := range c.opt.Definitions.Exposed(tenant, c.opt.Gateway) {
		list = append(list, exposedAgent(a))
	}
	return list
}

// visible returns which of his tenant's exposed agents a caller may see.
func (c *Catalog) visible(caller gateway.Caller) func(gateway.ExposedAgent) bool {
	none := func(gateway.ExposedAgent) bool { return false }
	if caller.IsUser() {
		return func(a gateway.ExposedAgent) bool { return a.Entrypoint }
	}
	if strings.HasPrefix(caller.Realm, c.strangers()) {
		if g, ok := c.Settings(); !ok || !gateway.Matches(g.Admit, caller.Principal.PeerSwarm()) || caller.Principal.Tenant != g.StrangerTenant {
			return none
		}
		return func(gateway.ExposedAgent) bool { return true }
	}
	p, ok := c.Partner(caller.Realm)
	if !ok || p.Tenant != caller.Principal.Tenant {
		return none
	}
	return func(a gateway.ExposedAgent) bool { return p.Sees(a.Name) }
}

// exposedAgent has the form of the port. Each agent may emit pieces of its answer.
func exposedAgent(a definition.ExposedAgent) gateway.ExposedAgent {
	e := gateway.ExposedAgent{
		Swarm: a.Swarm, Name: a.Name, Description: a.Description, Version: a.Version, Entrypoint: a.Entrypoint, Streams: true,
	}
	for _, one := range a.Capabilities {
		effect, action := a.Effects[one.ID]
		e.Capabilities = append(e.Capabilities, gateway.Capability{
			ID: one.ID, Version: one.Version, Description: one.Description, Input: one.InputSchema, Output: one.OutputSchema, Constraints: one.Constraints,
			Action: action, ReadOnly: effect == config.EffectRead,
		})
	}
	return e
}
