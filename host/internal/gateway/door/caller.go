package door

import (
	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// principal is the caller as the runtime has him. All callers of a realm have the realm's
// instance.
func principal(c gateway.Caller) swarm.Principal {
	p := swarm.Principal{Tenant: c.Principal.Tenant, Role: c.Principal.Role.Mail(), ID: c.Principal.ID}
	if !c.IsUser() {
		p.ID = c.Realm
	}
	return p
}

// accountOf is whose messages a rate counts together.
func accountOf(c gateway.Caller) string {
	p := principal(c)
	return p.Tenant + "/" + p.Instance("").Instance
}

// exchangeKey is the key of the submission of a caller's message.
func exchangeKey(c gateway.Caller, id string) string {
	if c.IsUser() {
		return id
	}
	return swarm.RemoteKey(c.Realm, id)
}

// findAgent returns the exposed agent that a caller means, and ErrUnknown for all others.
func (d *Door) findAgent(c gateway.Caller, swarmName, name string) (gateway.ExposedAgent, error) {
	for _, a := range d.opt.ExposedAgents(c) {
		named := a.Name == name || name == "" && a.Entrypoint
		if named && (a.Swarm == swarmName || swarmName == "") && (a.Entrypoint || !c.IsUser()) {
			return a, nil
		}
	}
	return gateway.ExposedAgent{}, unknownAgent(name)
}
