package amp

import (
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// partnerOf returns the partner of a caller, for what strangers may not do. The text is what needs
// one.
func (g *Gateway) partnerOf(c gateway.Caller, what string) (gateway.Partner, error) {
	p, ok := g.Runtime.Partner(c.Realm)
	if !ok {
		return p, message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "%s needs a partner of the configuration, which %s is not: add [gateways.amp.partners.NAME], and a key of it", what, c.Realm)
	}
	return p, nil
}

// checkRight refuses a realm whose table does not give it a right.
func checkRight(c gateway.Caller, right gateway.Right) error {
	if c.May.Has(right) {
		return nil
	}
	return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "%s may not do this: add %q to may in [gateways.amp.partners.%s]", c.Realm, right, c.Realm)
}

// ownsAgent reports whether a foreign agent is one of a realm. A realm without ids has one
// agent, which has its name.
func ownsAgent(p gateway.Partner, realm, agent string) bool {
	if len(p.IDs) > 0 {
		return p.Owns(agent)
	}
	return agent == realm
}

// checkOwner refuses an agent, which a member of a message names, that is none of the caller's
// realm. p is the zero value for a stranger.
func checkOwner(c gateway.Caller, p gateway.Partner, member, agent string) error {
	switch {
	case ownsAgent(p, c.Principal.PeerSwarm(), agent):
		return nil
	case p.Name == "":
		return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "%s %.100q is no agent of the caller, which has one: %s", member, agent, c.Principal.PeerSwarm())
	}
	return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "%s %.100q is no agent of %s: add it to ids in [gateways.amp.partners.%s]", member, agent, p.Name, p.Name)
}
