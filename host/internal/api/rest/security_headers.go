package rest

import "net/http"

// denyAllPolicy is the content security policy of data. Pages have a policy of
// their own.
const denyAllPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// setSecurityHeaders restricts what browsers do with an answer.
func setSecurityHeaders(head http.Header, r *http.Request) {
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Content-Security-Policy", denyAllPolicy)
	if r.TLS != nil {
		head.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if mustCloseConnection(r) {
		head.Set("Connection", "close")
	}
}

// mustCloseConnection reports whether a proxy may have read another end of the
// request than this host (request smuggling), so that the next request on the
// connection could be forged. net/http does not reveal whether a chunked body
// also had a length, and before HTTP/1.1 it ignores chunks.
func mustCloseConnection(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}
