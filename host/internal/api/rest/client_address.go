package rest

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"skep/host/internal/api/listener"
)

// trustedProxies are the proxies whose X-Forwarded-For counts.
type trustedProxies []netip.Prefix

func (p trustedProxies) contains(ip netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(ip) })
}

// clientAddress returns the address that rate limits count for. Behind proxies it
// is the last address in X-Forwarded-For that is not a trusted proxy: a client
// can forge all addresses before it.
func (p trustedProxies) clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); len(p) > 0 {
		ip = p.followChain(ip, r.Header.Values("X-Forwarded-For"))
	}
	network := listener.Network(ip)
	if network.Addr().Is4() {
		return network.Addr().String()
	}
	return network.String()
}

// followChain walks X-Forwarded-For from its end while the hop is a trusted proxy
// and the next one parses.
func (p trustedProxies) followChain(ip netip.Addr, forwarded []string) netip.Addr {
	chain := strings.Split(strings.Join(forwarded, ","), ",")
	for _, hop := range slices.Backward(chain) {
		next, ok := parseHop(strings.TrimSpace(hop))
		if !ok || !p.contains(ip) {
			return ip
		}
		ip = next
	}
	return ip
}

// parseHop reads an address. Some proxies add a port or brackets.
func parseHop(hop string) (netip.Addr, bool) {
	if inner, ok := strings.CutPrefix(hop, "["); ok && strings.HasSuffix(inner, "]") {
		ip, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return ip.Unmap().WithZone(""), err == nil && ip.Is6()
	}
	ip, err := netip.ParseAddr(hop)
	if err != nil {
		var with netip.AddrPort
		with, err = netip.ParseAddrPort(hop)
		ip = with.Addr()
	}
	return ip.Unmap().WithZone(""), err == nil
}
