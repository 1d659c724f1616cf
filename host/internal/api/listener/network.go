package listener

import (
	"net"
	"net/netip"
)

// nat64 is the prefix under which IPv6-only networks embed IPv4 addresses (RFC
// 6052: https://www.rfc-editor.org/rfc/rfc6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Network returns what counts as one client: one IPv4 address in any form, or one
// IPv6 /64, which is what providers assign to one customer.
func Network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		whole := ip.As16()
		ip = netip.AddrFrom4([4]byte(whole[12:]))
	}
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	// The bits fit; the invalid address has no prefix.
	network, _ := ip.Prefix(bits)
	return network
}

// Loopback reports whether only this machine can reach a listener at a.
func Loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
