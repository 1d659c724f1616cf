package rest

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"skep/host/internal/listen"
)

// proxies are those that are believed when they say for whom they call.
type proxies []netip.Prefix

func (p proxies) trust(ip netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(ip) })
}

// caller is who shares a bucket with the one who asks. Behind proxies it is the
// last address in X-Forwarded-For that is not one of them: what stands before it
// may be anybody's words.
func (p proxies) caller(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); len(p) > 0 {
		ip = p.behind(ip, r.Header.Values("X-Forwarded-For"))
	}
	network := listen.Network(ip)
	if network.Addr().Is4() {
		return network.Addr().String()
	}
	return network.String()
}

// behind follows the chain back from the one who called, as far as it can be
// believed and understood.
func (p proxies) behind(ip netip.Addr, forwarded []string) netip.Addr {
	chain := strings.Split(strings.Join(forwarded, ","), ",")
	for _, hop := range slices.Backward(chain) {
		next, ok := readHop(strings.TrimSpace(hop))
		if !ok || !p.trust(ip) {
			return ip
		}
		ip = next
	}
	return ip
}

// readHop reads an address, which some proxies write with a port or in brackets.
func readHop(hop string) (netip.Addr, bool) {
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
