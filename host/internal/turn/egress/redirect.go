package egress

import (
	"net/http"
	"slices"
	"strings"

	"skep/abi"
)

func isRedirect(status int) bool {
	return slices.Contains([]int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	}, status)
}

// redirect returns the hop to which a response redirects the fetch. Methods change as in
// the Fetch standard (https://fetch.spec.whatwg.org/#http-redirect-fetch): 303 turns all
// but GET and HEAD into GET, 301 and 302 turn POST into GET, 307 and 308 keep the method.
func (h *hop) redirect(status int, location string) (*hop, *abi.Error) {
	to, err := h.target.resolve(location)
	switch {
	case h.scrub.holds(location) || h.scrub.holds(to.String()):
		return nil, fault(abi.CodeDenied, ReasonRedirect, "%s redirects to a URL with the value of a secret in it", h.displayURL())
	case err != nil:
		return nil, fault(abi.CodeDenied, ReasonRedirect, "%s redirects to a URL that is not allowed: %v", h.displayURL(), err)
	}
	n := *h
	n.target, n.header = to, h.header.Clone()
	if status == http.StatusSeeOther && h.method != http.MethodGet && h.method != http.MethodHead ||
		h.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound) {
		n.method, n.body = http.MethodGet, nil
		dropBodyHeaders(n.header)
	}
	grant, ok := findGrant(h.policy.Grants, n.method, to)
	if !ok {
		return nil, n.grantError(ReasonRedirect, h.displayURL()+" redirects: ")
	}
	n.grant = grant
	if to.origin() == h.target.origin() {
		return &n, nil
	}
	return &n, n.crossOrigin(h)
}

// crossOrigin leaves an origin. Credentials are dropped for the rest of the fetch. A body
// crosses only under a grant that names its method, because the guest wrote it for the
// first server.
func (n *hop) crossOrigin(from *hop) *abi.Error {
	n.leftOrigin = true
	n.header.Del("Authorization")
	n.header.Del("Cookie")
	for _, s := range n.policy.Secrets {
		n.header.Del(s.header)
	}
	if len(n.body) > 0 && !slices.ContainsFunc(n.policy.Grants, func(g Grant) bool { return g.methods != nil && g.covers(n.method, n.target) }) {
		return fault(abi.CodeDenied, ReasonRedirect, "%s redirects a body to another origin; it takes a grant that names the method, allow = { http = [%q] }%s",
			from.displayURL(), n.method+" "+n.target.origin(), n.policy.inTable())
	}
	return nil
}

func dropBodyHeaders(header http.Header) {
	for name := range header {
		if strings.HasPrefix(name, "Content-") || name == "Digest" || name == "Last-Modified" {
			header.Del(name)
		}
	}
}
