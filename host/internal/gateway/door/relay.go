package door

import (
	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// CheckRelay is [gateway.Runtime]'s. The members of a realm are the ids of its partner, so
// that nothing leaves the realm but for one that may relay as well.
func (d *Door) CheckRelay(c gateway.Caller, m gateway.Relayed) error {
	p, ok := d.opt.Partner(c.Realm)
	to := p
	if m.Realm != "" {
		var known bool
		to, known = d.opt.Partner(m.Realm)
		ok = ok && known && to.Tenant == p.Tenant && to.May.Has(gateway.MayRelay)
	}
	switch {
	case c.IsUser() || !c.May.Has(gateway.MayRelay):
		return denied("%s", c.Missing(d.opt.Gateway, gateway.MayRelay))
	case !ok || !p.Owns(m.From) || !to.Owns(m.To):
		return denied("%.200q and %.200q are not both of %q, or of a partner that may relay: add them to ids in [gateways.%s.partners.%s]", m.From, m.To, c.Realm, d.opt.Gateway, c.Realm)
	case m.Hops >= swarm.MaxHops:
		return invalid("the message was handed on %d times, at most %d", m.Hops, swarm.MaxHops)
	}
	return d.checkCallerRate(c)
}

// CheckRate is [gateway.Runtime]'s.
func (d *Door) CheckRate(c gateway.Caller) error { return d.checkCallerRate(c) }
