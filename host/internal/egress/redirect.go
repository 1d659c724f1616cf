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

// redirected is the hop that an answer sends the fetch to. Methods change as
// in browsers: 303 makes a GET of all but GET and HEAD, 301 and 302 make one
// of POST, 307 and 308 keep all.
func (h *hop) redirected(status int, location string) (*hop, *abi.Error) {
	to, err := h.to.resolve(location)
	switch {
	case h.scrub.holds(location) || h.scrub.holds(to.String()):
		return nil, fault(abi.CodeDenied, ReasonRedirect, "%s redirects to a URL with the value of a secret in it", h.shown())
	case err != nil:
		return nil, fault(abi.CodeDenied, ReasonRedirect, "%s redirects to a URL that is not allowed: %v", h.shown(), err)
	}
	n := *h
	n.to, n.header = to, h.header.Clone()
	if status == http.StatusSeeOther && h.method != http.MethodGet && h.method != http.MethodHead ||
		h.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound) {
		n.method, n.body = http.MethodGet, nil
		dropBodyHeaders(n.header)
	}
	grant, ok := covering(h.policy.Grants, n.method, to)
	if !ok {
		return nil, n.ungranted(ReasonRedirect, h.shown()+" redirects: ")
	}
	n.grant = grant
	if to.origin() == h.to.origin() {
		return &n, nil
	}
	return &n, n.cross(h)
}

// cross leaves an origin. Credentials stay behind for the rest of the fetch. A
// body crosses only under a grant that names its method: it was written for
// the server that the guest chose.
func (n *hop) cross(from *hop) *abi.Error {
	n.left = true
	n.header.Del("Authorization")
	n.header.Del("Cookie")
	for _, s := range n.policy.Secrets {
		n.header.Del(s.header)
	}
	if len(n.body) > 0 && !slices.ContainsFunc(n.policy.Grants, func(g Grant) bool { return g.methods != nil && g.covers(n.method, n.to) }) {
		return fault(abi.CodeDenied, ReasonRedirect, "%s redirects a body to another origin; it takes a grant that names the method, allow = { http = [%q] }%s",
			from.shown(), n.method+" "+n.to.origin(), n.policy.in())
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
