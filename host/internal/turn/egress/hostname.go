package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// parseHost normalizes a host: a name in lower case without the final dot, or an address
// as netip prints it. It refuses names that some parser could take for an address, and
// addresses that parsers read differently.
func parseHost(text string, bracketed bool) (name string, addr netip.Addr, err error) {
	if bracketed {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return "", netip.Addr{}, fmt.Errorf("[%s] is not an IPv6 address without zone", truncate(text))
		}
		addr = addr.Unmap()
		return addr.String(), addr, nil
	}
	name = strings.TrimSuffix(strings.ToLower(text), ".")
	labels := strings.Split(name, ".")
	if err := checkLabels(name, labels); err != nil {
		return "", netip.Addr{}, err
	}
	if !numeric(labels[len(labels)-1]) {
		return name, netip.Addr{}, nil
	}
	if addr, err = netip.ParseAddr(name); err != nil {
		return "", netip.Addr{}, fmt.Errorf("%q is not an IPv4 address of four decimal numbers", truncate(text))
	}
	return name, addr, nil
}

func checkLabels(name string, labels []string) error {
	if len(name) > 253 {
		return errors.New("the host's name is longer than 253 bytes")
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return fmt.Errorf("the host %q has a part that is empty or longer than 63 bytes", truncate(name))
		}
		for _, c := range []byte(label) {
			if c >= 0x80 {
				return fmt.Errorf("the host %q is not ASCII; write it in its xn-- form", truncate(name))
			}
			if !isAlnum(c) && c != '-' && c != '_' {
				return fmt.Errorf("the host %q has the character %q", truncate(name), c)
			}
		}
	}
	return nil
}

// numeric reports whether some parsers would take a host that ends in this label for an
// IPv4 address: 2130706433, 0x7f000001 and 127.1 are 127.0.0.1.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
