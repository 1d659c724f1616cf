package rest

import (
	"fmt"

	"skep/host/internal/auth"
	"skep/host/internal/registry"
)

// mayVouch says why somebody may not have tokens made that speak for a swarm; empty
// means that he may. It is asked when a token is made, and again whenever one is
// used: the swarm may have become known meanwhile. Names that are hard to tell apart
// are one here.
func (h *Handler) mayVouch(m auth.Maker, swarm string) string {
	if swarm == "" || m.Role == auth.Operator {
		return ""
	}
	peer, known := h.knownPeer(swarm)
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

// knownPeer is the entry of the swarm that this host knows under a name or one like
// it, that of the operator's file first. A swarm that another one lists counts by its
// own name only: anybody may list what looks like others.
func (h *Handler) knownPeer(name string) (found registry.Entry, known bool) {
	for _, e := range h.opt.Registry.Entries() {
		if e.Name == name || !e.Found && registry.Alike(e.Name, name) {
			if e.Fixed {
				return e, true
			}
			found, known = e, true
		}
	}
	return found, known
}

// checkMaker refuses a caller whose token was made by somebody who may not have it
// made by now. Keys of the operator's file, and those for whom an authority outside
// vouches, have no maker.
func (c *call) checkMaker() error {
	who := c.w.who
	if who.Maker == (auth.Maker{}) {
		return nil
	}
	why := c.h.mayVouch(who.Maker, who.Speaks())
	if why == "" {
		return nil
	}
	return denied(why+"; this one was made by somebody else: ask for another",
		fmt.Sprintf("used a token of peer %s that was made by an %s of tenant %s: %s", who.Speaks(), who.Maker.Role, who.Maker.Tenant, why))
}
