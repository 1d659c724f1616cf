package rest

import (
	"fmt"

	"skep/host/internal/api/auth"
	"skep/host/internal/peer/registry"
	"skep/spec/mail"
)

// peerTokenDenial returns why a creator may not have a token that speaks for a
// swarm, or "". It is checked when a token is made, and again at each use: the
// swarm may have become known in between. Names that collide count as one.
func (h *Handler) peerTokenDenial(m auth.Creator, swarm string) string {
	if swarm == "" || m.Role == auth.Operator {
		return ""
	}
	peer, known := h.findPeer(swarm)
	switch {
	case !known:
		return ""
	case peer.Fixed:
		return fmt.Sprintf("swarm '%s' stands in swarm.toml, and tokens that speak for it are for the operator to make", peer.Name)
	case m.Role != auth.Admin || m.Tenant != h.opt.Tenant:
		return fmt.Sprintf("swarm '%s' is registered, and tokens that speak for it are for admins of tenant '%s' to make", peer.Name, h.opt.Tenant)
	}
	return ""
}

// findPeer returns the known swarm of a name or of a colliding name; an entry of
// the operator's file comes first. A discovered swarm counts by its exact name
// only: any peer can list a name that looks like another.
func (h *Handler) findPeer(name string) (found registry.Entry, known bool) {
	for _, e := range h.opt.Registry.Entries() {
		if e.Name == name || !e.Discovered && mail.SwarmNamesCollide(e.Name, name) {
			if e.Fixed {
				return e, true
			}
			found, known = e, true
		}
	}
	return found, known
}

// answersAnyTenant reports whether the caller answers for a known swarm in the tasks of
// all tenants: the operator has given it a key of the host's own tenant. One that an
// admin of that tenant has made is for the tenant's own tasks. A swarm that is not known,
// or not any more, gets no mail of other tenants and answers none.
func (c *call) answersAnyTenant() bool {
	_, known := c.h.findPeer(c.w.who.PeerSwarm())
	byOperator := c.w.who.Creator == (auth.Creator{}) || c.w.who.Creator.Role == auth.Operator
	return known && byOperator && c.principal().Tenant == c.h.opt.Tenant
}

// checkTokenCreator refuses a caller whose token's creator may no longer have
// such a token. Keys of the operator's file and tokens of an external auth
// backend have no creator.
func (c *call) checkTokenCreator() error {
	who := c.w.who
	if who.Creator == (auth.Creator{}) {
		return nil
	}
	why := c.h.peerTokenDenial(who.Creator, who.PeerSwarm())
	if why == "" {
		return nil
	}
	return denied(why+"; this one was made by somebody else: ask for another",
		fmt.Sprintf("used a token of peer %s that was made by an %s of tenant %s: %s", who.PeerSwarm(), who.Creator.Role, who.Creator.Tenant, why))
}
