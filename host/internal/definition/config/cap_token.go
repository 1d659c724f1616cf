package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway/uamp/seal"
)

// checkCapToken makes sure that the capability token for a partner can be read, and warns of one
// that has expired, with which nothing goes to the partner, and of one for others.
func (r gatewayReader) checkCapToken(p Partner, text Secret) {
	if text == "" {
		return
	}
	at := r.t.child("partners").child(p.Name).child("cap_token")
	now := r.d.opt.Now
	if now.IsZero() { // at a reload
		now = time.Now()
	}
	token, err := seal.ReadToken(text.Reveal())
	switch {
	case err != nil:
		r.d.atKey(at, fmt.Sprintf(`%s must be a capability token, as in "file::lab.token": %v`, at.path, err))
	case token.Expires.IsZero():
		r.d.atKey(at, at.path+" has no exp, without which it does not count for a host that goes by the document: ask the partner for one with an end")
	case !now.Before(token.Expires):
		r.d.warn(at, fmt.Sprintf("%s expired at %s: nothing is sent to the partner until there is another", at.path, token.Expires.UTC().Format(time.RFC3339)))
	case len(p.IDs) > 0 && !slices.ContainsFunc(token.Audience, func(id string) bool { return isForPartner(p.IDs, id) }):
		r.d.warn(at, fmt.Sprintf("%s is for %.200q, which is none of ids nor the host of one: the partner will refuse it", at.path, token.Audience))
	}
}

// isForPartner reports whether an audience is an id of a partner, or the host of one.
func isForPartner(ids []string, audience string) bool {
	return slices.ContainsFunc(ids, func(id string) bool {
		begin, _, isPattern := strings.Cut(id, "*")
		return audience == id || strings.HasPrefix(id, audience+":") || isPattern && strings.HasPrefix(audience, begin)
	})
}
