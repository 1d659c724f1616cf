package listen

import (
	"net"
	"net/netip"
)

// Network is who shares a bucket: one IPv4 address, or one IPv6 network as
// providers give it to one customer.
func Network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
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
