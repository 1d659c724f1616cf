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
}
