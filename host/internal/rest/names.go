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

// names are the host names under which a listener takes requests. Names that
// resolve to loopback are anybody's to make, so a listener that trusts its
// machine must look at the name it was called by.
type names struct {
	check bool
	known map[string]bool
}

// newNames takes the hosts given and that of the public URL, if there is one.
func newNames(loopback bool, hosts []string, public string) names {
	n := names{check: loopback, known: map[string]bool{"localhost": true}}
	for _, h := range hosts {
		n.known[bare(h)] = true
	}
	if u, err := url.Parse(public); err == nil && u.Host != "" {
		n.known[bare(u.Host)] = true
	}
	return n
}

// take reports whether a request for a Host header is ours.
func (n names) take(host string) bool {
	if !n.check {
		return true
	}
	name := bare(host)
	ip, err := netip.ParseAddr(name)
	return n.known[name] || err == nil && ip.Unmap().IsLoopback()
}

// bare is a host without port, brackets and the root's dot, in lower case.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
