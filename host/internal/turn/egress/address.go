package egress

import "net/netip"

// addressClass is the purpose of an address block. A grant reaches public addresses by any
// name, all others only when it names them.
type addressClass string

const (
	public   addressClass = "public"
	loopback addressClass = "loopback"
)

// neverAllowed reports whether no grant opens the class: such an address names more than
// one host or, on the local link, the metadata service that hands a machine its cloud
// credentials.
func (c addressClass) neverAllowed() bool {
	return c == "unspecified" || c == "multicast" || c == "broadcast" || c == "reserved" || c == "link-local"
}

// specialBlocks lists the address blocks that are not public, narrow blocks first. See the
// IANA special-purpose registries,
// https://www.iana.org/assignments/iana-ipv4-special-registry and
// https://www.iana.org/assignments/iana-ipv6-special-registry.
func specialBlocks() []struct{ prefix, class string } {
	return []struct{ prefix, class string }{
		{"255.255.255.255/32", "broadcast"},
		{"0.0.0.0/8", "unspecified"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "carrier-grade NAT"},
		{"127.0.0.0/8", "loopback"},
		{"168.63.129.16/32", "link-local"}, // Azure's platform service, reachable from every machine there
		{"169.254.0.0/16", "link-local"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "protocol"},
		{"192.0.2.0/24", "documentation"},
		{"192.88.99.0/24", "6to4"},
		{"192.168.0.0/16", "private"},
		{"198.18.0.0/15", "benchmark"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "reserved"},

		{"::/128", "unspecified"},
		{"::1/128", "loopback"},
		{"64:ff9b:1::/48", "NAT64"},
		{"fc00::/7", "private"},
		{"fe80::/10", "link-local"},
		{"fec0::/10", "private"},
		{"ff00::/8", "multicast"},
		{"2001:db8::/32", "documentation"},
		{"2001::/23", "protocol"},
		{"2002::/16", "6to4"},
		{"3fff::/20", "documentation"},
	}
}

// classify returns the class of an address. An IPv4 address inside an IPv6 address has the
// class of the IPv4 address; an address with a zone is link-local. Of IPv6, only the
// allocated block 2000::/3 is public.
func classify(a netip.Addr) addressClass {
	if a = a.Unmap(); a.Zone() != "" {
		return "link-local"
	}
	if v4, ok := nat64Address(a); ok {
		return classify(v4)
	}
	for _, s := range specialBlocks() {
		if netip.MustParsePrefix(s.prefix).Contains(a) {
			return addressClass(s.class)
		}
	}
	if a.Is4() || netip.MustParsePrefix("2000::/3").Contains(a) {
		return public
	}
	return "reserved"
}

// nat64Address returns the IPv4 address inside an address of the NAT64 well-known block
// (RFC 6052). Hosts without IPv4 get such addresses from DNS for every IPv4 server.
func nat64Address(a netip.Addr) (netip.Addr, bool) {
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		return netip.Addr{}, false
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:])), true
}
