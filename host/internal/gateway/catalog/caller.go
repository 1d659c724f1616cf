package catalog

import (
	"crypto/sha256"
	"encoding/hex"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
	"skep/spec/mail"
)

// Caller is a principal as gateways have him: a user, a partner, or a stranger whose realm
// has the gateway's name before its own. A realm that is too long for a swarm's name is
// hashed.
func (c *Catalog) Caller(who auth.Principal) gateway.Caller {
	caller := gateway.Caller{Principal: who}
	if caller.IsUser() {
		return caller
	}
	caller.Realm, caller.May = who.PeerSwarm(), gateway.Rights{gateway.MayAsk}
	if p, ok := c.Partner(caller.Realm); ok {
		caller.May = p.May
		return caller
	}
	caller.Realm = c.strangers() + caller.Realm
	if mail.CheckSwarmName(caller.Realm) != nil {
		sum := sha256.Sum256([]byte(who.PeerSwarm()))
		caller.Realm = c.strangers() + "~" + hex.EncodeToString(sum[:16])
	}
	return caller
}

// strangers begins the names of the realms of strangers.
func (c *Catalog) strangers() string { return c.opt.Gateway + "+" }
