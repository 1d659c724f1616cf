package egress

import "net/netip"

// class says what an address is for. Only those of the public Internet may be
// reached without being named.
type class string

const (
	public   class = "public"
	loopback class = "loopback"
)

// never are the classes that no grant opens: they name no one host, or, of this
// link, the service by which a cloud tells a machine its credentials.
func (c class) never() bool {
	return c == "unspecified" || c == "multicast" || c == "broadcast" || c == "reserved" || c == "link-local"
}

// special lists address blocks that are not public, narrow ones first.
func special() []struct{ prefix, class string } {
	return []struct{ prefix, class string }{
		{"255.255.255.255/32", "broadcast"},
		{"0.0.0.0/8", "unspecified"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "carrier-grade NAT"},
		{"127.0.0.0/8", "loopback"},
		{"168.63.129.16/32", "link-local"}, // Azure's own service, which every machine there reaches
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

// classify says what an address is for. An IPv4 address inside an IPv6 one
// counts as what it is, one with a zone as of that link. Of IPv6 only what is handed out (2000::/3) is public.
func classify(a netip.Addr) class {
	if a = a.Unmap(); a.Zone() != "" {
		return "link-local"
	}
	if v4, ok := translated(a); ok {
		return classify(v4)
	}
	for _, s := range special() {
		if netip.MustParsePrefix(s.prefix).Contains(a) {
			return class(s.class)
		}
	}
	if a.Is4() || netip.MustParsePrefix("2000::/3").Contains(a) {
		return public
	}
	return "reserved"
}

// translated is the IPv4 address that a NAT64 gateway makes of an address in
// its well-known block. Hosts without IPv4 get such answers from DNS for every
// IPv4 server.
func translated(a netip.Addr) (netip.Addr, bool) {
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		return netip.Addr{}, false
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:])), true
}
