package egress

import (
	"context"
	"net/netip"

	"skep/abi"
)

// maxAddresses bounds how many addresses of a name are tried.
const maxAddresses = 8

// addresses are those of the hop's host that may be dialled.
func (h *hop) addresses(ctx context.Context) ([]netip.Addr, *abi.Error) {
	all, err := h.lookup(ctx)
	switch {
	case err != nil:
		return nil, fault(abi.CodeUnavailable, ReasonDNS, "the name %s cannot be resolved", cut(h.to.host))
	case len(all) == 0:
		return nil, fault(abi.CodeUnavailable, ReasonDNS, "the name %s has no address", cut(h.to.host))
	}
	var out []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); h.mayReach(a) && len(out) < maxAddresses {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, h.unreachable(classify(all[0]))
	}
	return out, nil
}

// lookup asks for the name with its final dot, so that a search list cannot
// make another name of it.
func (h *hop) lookup(ctx context.Context) ([]netip.Addr, error) {
	switch {
	case h.to.addr.IsValid():
		return []netip.Addr{h.to.addr}, nil
	case h.to.host == localhost:
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return h.c.o.Resolver.LookupNetIP(ctx, "ip", h.to.host+".")
}

// mayReach checks an address of the hop's host. A private one is reached only
// by its own name, unless the operator trusts that of a host: DNS has no say in it.
func (h *hop) mayReach(a netip.Addr) bool {
	c := classify(a)
	if c == public {
		return !h.policy.NoPublicHTTP || h.to.scheme == "https"
	}
	named := h.to.addr == a || h.to.host == localhost && c == loopback
	trusted := h.policy.PrivateNames && h.grant.hosts == exact
	return (named && h.policy.AllowPrivate || trusted) && !c.never()
}

func (h *hop) unreachable(c class) *abi.Error {
	host := cut(h.to.host)
	switch {
	case c == public:
		return fault(abi.CodeDenied, ReasonAddress, "%s is or resolves to a public address, and anybody on the way there could read what is sent; use https", h.to.origin())
	case c.never():
		return fault(abi.CodeDenied, ReasonAddress, "%s is or resolves to an address that no grant opens (%s)", host, c)
	case h.to.addr.IsValid() || h.to.host == localhost:
		return fault(abi.CodeDenied, ReasonAddress, "%s is not a public address (%s); it takes allow = { http_private = true }%s", host, c, h.policy.in())
	}
	return fault(abi.CodeDenied, ReasonAddress,
		"%s resolves to an address that is not public (%s); it takes a grant of that address itself, as in allow = { http = [\"http://10.0.0.1\"], http_private = true }%s", host, c, h.policy.in())
}
