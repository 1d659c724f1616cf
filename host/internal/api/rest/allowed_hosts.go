package rest

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

var errWrongHost = newFault(http.StatusMisdirectedRequest,
	"this listener serves loopback names only; add the name to [server] hosts or set [server] public_url")

// allowedHosts is the set of Host headers that a listener accepts. Any DNS name
// can resolve to loopback, so a loopback listener must check the name (DNS
// rebinding).
type allowedHosts struct {
	check bool
	names map[string]bool
}

// newAllowedHosts allows the given hosts and the host of the public URL, if there
// is one.
func newAllowedHosts(loopback bool, hosts []string, public string) allowedHosts {
	n := allowedHosts{check: loopback, names: map[string]bool{"localhost": true}}
	for _, h := range hosts {
		n.names[hostName(h)] = true
	}
	if u, err := url.Parse(public); err == nil && u.Host != "" {
		n.names[hostName(u.Host)] = true
	}
	return n
}

// allows reports whether the listener accepts a Host header.
func (n allowedHosts) allows(host string) bool {
	if !n.check {
		return true
	}
	name := hostName(host)
	ip, err := netip.ParseAddr(name)
	return n.names[name] || err == nil && ip.Unmap().IsLoopback()
}

// hostName returns a host in lower case, without port, brackets and trailing dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
