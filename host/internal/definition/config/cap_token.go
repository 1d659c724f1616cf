package config

import (
	"fmt"
	"time"

	"skep/host/internal/gateway/uamp/seal"
)

// checkCapToken makes sure that the capability token for a partner can be read, and warns of one
// that has expired: nothing goes to the partner until there is another.
func (r gatewayReader) checkCapToken(p Partner, text Secret) {
	if text == "" {
		return
	}
	at := r.t.child("partners").child(p.Name).child("cap_token")
	token, err := seal.ReadToken(text.Reveal())
	switch {
	case err != nil:
		r.d.atKey(at, fmt.Sprintf(`%s must be a capability token, as in "file::lab.token": %v`, at.path, err))
	case token.Expires.IsZero():
		r.d.atKey(at, at.path+" has no exp, and does not count for a host that goes by the document")
	case !r.d.opt.Now.Before(token.Expires): // a reload has no time
		r.d.warn(at, fmt.Sprintf("%s expired at %s: nothing is sent to the partner until there is another", at.path, token.Expires.UTC().Format(time.RFC3339)))
	}
}
