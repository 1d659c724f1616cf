package egress

import (
	"strings"

	"skep/abi"
)

// Reasons in [abi.Error.Reason] of the errors of a fetch.
const (
	ReasonRequest    = "request"          // INVALID: method, URL or body
	ReasonHeader     = "header"           // INVALID: a header of the request
	ReasonGrant      = "grant"            // DENIED: no grant covers the URL
	ReasonAddress    = "address"          // DENIED: the address may not be reached
	ReasonRedirect   = "redirect"         // DENIED or LIMIT: where the server points to
	ReasonTimeout    = "timeout"          // DEADLINE: of the fetch
	ReasonTurn       = "turn"             // DEADLINE or CANCELLED: of the caller
	ReasonDNS        = "dns"              // UNAVAILABLE
	ReasonRefused    = "refused"          // UNAVAILABLE: the connection
	ReasonConnect    = "connect"          // UNAVAILABLE: the connection, otherwise
	ReasonTLS        = "tls"              // UNAVAILABLE
	ReasonConnection = "connection"       // UNAVAILABLE: it broke
	ReasonProtocol   = "protocol"         // UNAVAILABLE: the answer is not HTTP
	ReasonEncoding   = "encoding"         // UNAVAILABLE: the answer cannot be decoded
	ReasonBody       = "response_bytes"   // LIMIT
	ReasonHeaders    = "response_headers" // LIMIT
	ReasonSent       = "request_bytes"    // LIMIT
)

func fault(code abi.Code, reason, format string, args ...any) *abi.Error {
	return abi.Errorf(code, abi.OpHTTPFetch, reason, format, args...)
}

// maxShown bounds foreign text in an error message, in bytes.
const maxShown = 200

// truncate shortens text for an error message.
func truncate(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
