package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
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

// CheckPublic returns why the client of [NewPublicClient] calls no such address.
func CheckPublic(address string) error {
	if err := egress.CheckURL(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	public, err := egress.ParseGrant(publicHosts)
	if err != nil {
		return err
	}
	if origin, err := egress.ParseGrant(u.Scheme + "://" + u.Host); err != nil || !public.Includes(origin) {
		return fmt.Errorf("%.200q is no name of a public host, reached by https at its port 443", address)
	}
	return nil
}

// publicHosts is the grant of all hosts with a name.
const publicHosts = "https://*"

// NewPublicClient returns a client for requests of one method to addresses that callers
// have chosen: names of public hosts over https only, without redirects, credentials and
// long answers.
func NewPublicClient(network func(*egress.Options), method string, maxReply int64) (*http.Client, error) {
	anyName, err := egress.ParseGrant(method + " " + publicHosts)
	if err != nil {
		return nil, err
	}
	t := &transport{timeout: 30 * time.Second, maxBody: maxReply, next: newEgress(network).Transport(egress.Policy{
		Table: "[gateways]", Grants: []egress.Grant{anyName}, NoPublicHTTP: true,
	})}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }}, nil
}
