package egress

import (
	"context"
	"net/netip"

	"skep/abi"
)

// maxAddresses bounds how many addresses of a name are dialled.
const maxAddresses = 8

// addresses returns the addresses of the hop's host that may be dialled.
func (h *hop) addresses(ctx context.Context) ([]netip.Addr, *abi.Error) {
	all, err := h.lookup(ctx)
	switch {
	case err != nil:
		return nil, fault(abi.CodeUnavailable, ReasonDNS, "the name %s cannot be resolved", truncate(h.target.host))
	case len(all) == 0:
		return nil, fault(abi.CodeUnavailable, ReasonDNS, "the name %s has no address", truncate(h.target.host))
	}
	var out []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); h.mayReach(a) && len(out) < maxAddresses {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, h.addressError(classify(all[0]))
	}
	return out, nil
}

// lookup resolves the host with a final dot, so that the search list of the system cannot
// extend the name.
func (h *hop) lookup(ctx context.Context) ([]netip.Addr, error) {
	switch {
	case h.target.addr.IsValid():
		return []netip.Addr{h.target.addr}, nil
	case h.target.host == localhost:
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return h.client.opt.Resolver.LookupNetIP(ctx, "ip", h.target.host+".")
}

// mayReach checks an address of the hop's host. A private address needs a grant that names
// it, or PrivateNames: DNS alone never opens it.
func (h *hop) mayReach(a netip.Addr) bool {
	c := classify(a)
	if c == public {
		return !h.policy.NoPublicHTTP || h.target.scheme == "https"
	}
	named := h.target.addr == a || h.target.host == localhost && c == loopback
	trusted := h.policy.PrivateNames && h.grant.hosts == exact
	return (named && h.policy.AllowPrivate || trusted) && !c.neverAllowed()
}

func (h *hop) addressError(c addressClass) *abi.Error {
	host := truncate(h.target.host)
	switch {
	case c == public:
		return fault(abi.CodeDenied, ReasonAddress, "%s is or resolves to a public address, and anybody on the way there could read what is sent; use https", h.target.origin())
	case c.neverAllowed():
		return fault(abi.CodeDenied, ReasonAddress, "%s is or resolves to an address that no grant opens (%s)", host, c)
	case h.policy.PrivateKey != "":
		return fault(abi.CodeDenied, ReasonAddress, "%s is or resolves to an address that is not public (%s); it takes %s", host, c, h.policy.PrivateKey)
	case h.target.addr.IsValid() || h.target.host == localhost:
		return fault(abi.CodeDenied, ReasonAddress, "%s is not a public address (%s); it takes allow = { http_private = true }%s", host, c, h.policy.inTable())
	}
	return fault(abi.CodeDenied, ReasonAddress,
		"%s resolves to an address that is not public (%s); it takes a grant of that address itself, as in allow = { http = [\"http://10.0.0.1\"], http_private = true }%s", host, c, h.policy.inTable())
}
