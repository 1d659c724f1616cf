package uamp

import (
	"skep/host/internal/gateway/uamp/did"
)

// agentsPart begins the path of the DIDs of agents: did:web:HOST:agents:SWARM:AGENT.
const agentsPart = "agents"

// address is one that this host answers for: a swarm's agent, or the host with neither.
type address struct{ swarm, agent string }

// addressOf finds the address behind a DID of this host (G-011).
func (o Options) addressOf(text string) (a address, ok bool) {
	id, err := did.Parse(text)
	if err != nil || id.Host() != o.host.Host() {
		return a, false
	}
	switch path := id.Path(); {
	case len(path) == 0:
		return a, true
	case len(path) == 3 && path[0] == agentsPart:
		return address{path[1], path[2]}, true
	}
	return a, false
}

// didOf is the inverse of addressOf. An agent whose name no DID can have is not ok.
func (o Options) didOf(a address) (text string, ok bool) {
	if a == (address{}) {
		return o.host.String(), true
	}
	id, err := did.Web(o.host.Host(), agentsPart, a.swarm, a.agent)
	return id.String(), err == nil
}
