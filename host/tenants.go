package host

import (
	"cmp"

	"skep/host/internal/auth"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/swarm"
)

// spread gives every tenant the swarm of the file as its own. What does not
// change is shared: a tenant of which nothing is under way costs a few hundred
// bytes.
func spread(cfg *config.Config, def swarm.Definition, agents map[string]capability.Binding) ([]swarm.Definition, map[capability.Agent]capability.Binding) {
	defs := make([]swarm.Definition, 0, len(cfg.Tenants))
	bindings := make(map[capability.Agent]capability.Binding, len(cfg.Tenants)*len(agents))
	for _, t := range cfg.Tenants {
		def.Tenant = t.Name
		defs = append(defs, def)
		for name, b := range agents {
			bindings[capability.Agent{Tenant: t.Name, Swarm: def.Name, Name: name}] = b
		}
	}
	return defs, bindings
}

// tenants says what the file gives each tenant.
func tenants(cfg *config.Config) map[string]swarm.Tenant {
	out := make(map[string]swarm.Tenant, len(cfg.Tenants))
	for _, t := range cfg.Tenants {
		out[t.Name] = swarm.Tenant{Weight: t.Weight, Quota: swarm.Quota{
			Turns: t.Turns, Tasks: t.Tasks, Queue: t.Queue,
			MessagesPerDay: t.MessagesPerDay, Storage: int64(t.Storage),
		}}
	}
	return out
}

func principal(k config.AuthKey) auth.Principal {
	return auth.Principal{Tenant: cmp.Or(k.Tenant, swarm.DefaultTenant), Role: auth.Role(k.Role), ID: k.ID}
}
