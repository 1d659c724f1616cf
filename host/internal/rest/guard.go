package rest

import "net/http"

// nothingElse lets a page do nothing: what is answered is data. Pages that are
// meant to be looked at have a policy of their own.
const nothingElse = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guardAnswer sets the headers that keep browsers from making more of an answer
// than it is.
func guardAnswer(head http.Header, r *http.Request) {
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Content-Security-Policy", nothingElse)
	if r.TLS != nil {
		head.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if lastOfItsConnection(r) {
		head.Set("Connection", "close")
	}
}

// lastOfItsConnection reports whether where the request ends may have been read
// otherwise by a proxy before this host, so that what follows could be anybody's.
// net/http does not tell whether a body in chunks had a length as well, and before
// HTTP/1.1 it passes over chunks.
func lastOfItsConnection(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}
