package gatewaytest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"skep/host/internal/gateway"
)

// Listener serves mounts as the public listener does: by method and path, after the
// bearer token and until it is revoked, with the limit of the body.
func Listener(rt *Runtime, mounts []gateway.Mount) http.Handler {
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
			if m.MaxBody >= 0 { // a stream of messages has no such bound
				r.Body = http.MaxBytesReader(w, r.Body, m.MaxBody)
			}
			ctx, end := rt.untilRevoked(r)
			defer end()
			m.Handler.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		http.NotFound(w, r)
	})
}

// errRevoked ends the requests of a revoked token.
var errRevoked = errors.New("the token is not valid any more")

// untilRevoked is the context of a request, which ends with its token.
func (rt *Runtime) untilRevoked(r *http.Request) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	if known, ok := rt.credential(r); ok {
		go func() {
			select {
			case <-known.ended:
				cancel(errRevoked)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
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
