package listen

import (
	"net"
	"net/netip"
)

// nat64 is where networks of IPv6 only put the addresses of IPv4 (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Network is who shares a bucket: one IPv4 address, however it is written, or one
// IPv6 network as providers give it to one customer.
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
	// The bits fit; what is no address has no network.
	network, _ := ip.Prefix(bits)
	return network
}

// Loopback reports whether only this machine can reach a listener at a.
func Loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
