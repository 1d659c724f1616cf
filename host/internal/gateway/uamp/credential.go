package uamp

import (
	"net/http"
	"strings"

	"skep/host/internal/gateway/uamp/envelope"
)

// Challenges of the header WWW-Authenticate
// (https://www.rfc-editor.org/rfc/rfc6750#section-3).
const (
	bearerChallenge = "Bearer"
	invalidToken    = `Bearer error="invalid_token"`
)

// credentialFault is the refusal of a caller that is not identified, with its challenge: it
// names what the request shows, and that nothing is shown (U-041).
func credentialFault(r *http.Request) (f *envelope.Fault, challenge string) {
	refuse := func(text string) *envelope.Fault { return &envelope.Fault{Code: envelope.Unauthenticated, Text: text} }
	shown := r.Header.Get("Authorization")
	scheme, _, _ := strings.Cut(shown, " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return refuse("the bearer token is not valid: it is unknown here, has expired or was revoked"), invalidToken
	case shown != "":
		return refuse("the header Authorization has no bearer token: write Bearer and the token"), bearerChallenge
	case r.TLS != nil && len(r.TLS.PeerCertificates) > 0:
		return refuse("the client certificate names no partner: certificates in a partner's table has its names"), bearerChallenge
	}
	return refuse("no credential is shown: show a bearer token or a client certificate"), bearerChallenge
}
