package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// Caller is a principal as gateways know him: a user, a partner, or a stranger whose realm
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
	caller.Realm = c.opt.Gateway + "+" + caller.Realm
	if mail.CheckSwarmName(caller.Realm) != nil {
		sum := sha256.Sum256([]byte(who.PeerSwarm()))
		caller.Realm = c.opt.Gateway + "+~" + hex.EncodeToString(sum[:16])
	}
	return caller
}

// NewPublicClient returns a client for requests of one method to addresses that callers
// have chosen: names of public hosts over https only, without redirects, credentials and
// long answers.
func NewPublicClient(network func(*egress.Options), method string, maxReply int64) (*http.Client, error) {
	anyName, err := egress.ParseGrant(method + " https://*")
	if err != nil {
		return nil, err
	}
	t := &transport{timeout: 30 * time.Second, maxBody: maxReply, next: newEgress(network).Transport(egress.Policy{
		Table: "[gateways]", Grants: []egress.Grant{anyName}, NoPublicHTTP: true,
	})}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }}, nil
}
