package rest

import (
	"net/http"
	"slices"
)

// crossOrigin lets pages of configured origins read answers. It reports whether
// it has answered a preflight request
// (https://fetch.spec.whatwg.org/#http-cors-protocol).
func (h *Handler) crossOrigin(w http.ResponseWriter, r *http.Request) bool {
	if len(h.opt.Origins) == 0 {
		return false
	}
	head := w.Header()
	head.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(h.opt.Origins, origin) {
		return false
	}
	head.Set("Access-Control-Allow-Origin", origin)
	head.Set("Access-Control-Allow-Credentials", "true")
	head.Set("Access-Control-Expose-Headers", "Location, Preference-Applied, Retry-After, X-Skep-Ignored, X-MAIL-Finish-Subject, X-MAIL-Task-Id, X-Request-Id")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	head.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
	head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer, Traceparent, Tracestate, X-Request-Id")
	head.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
