package gatewaytest

import (
	"net/http"
	"strings"

	"skep/host/internal/gateway"
)

// Listener serves mounts as the public listener does: by method and path, after the
// bearer token, with the limit of the body.
func Listener(rt gateway.Runtime, mounts []gateway.Mount) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, m := range mounts {
			if !matches(m, r) {
				continue
			}
			if m.Proof == gateway.Bearer {
				if _, err := rt.Identify(r); err != nil {
					w.Header().Set("WWW-Authenticate", "Bearer")
					http.Error(w, "Unauthorized", http.StatusUnauthorized)
					return
				}
			}
			r.Body = http.MaxBytesReader(w, r.Body, m.MaxBody)
			m.Handler.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
}

func matches(m gateway.Mount, r *http.Request) bool {
	if m.Method != "" && m.Method != r.Method {
		return false
	}
	if prefix, ok := strings.CutSuffix(m.Pattern, "*rest"); ok {
		return strings.HasPrefix(r.URL.Path, prefix)
	}
	return r.URL.Path == m.Pattern
}
