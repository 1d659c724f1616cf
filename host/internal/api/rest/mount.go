package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"
)

// Mount is a route of another protocol on the public listener, behind the same gates as
// the routes of this package: hosts, origins, rates, credentials, sizes, drain.
type Mount struct {
	// Method is empty for all methods. A GET route answers HEAD.
	Method string
	// Pattern is a path in the syntax of httprouter: /a2a/:swarm, /agents/*rest. The
	// handler reads the parts with [http.Request.PathValue].
	Pattern string
	Proof   Proof
	// Metadata is the address below which documents name who issues tokens for a path, for
	// [BearerProof]; empty for none (https://www.rfc-editor.org/rfc/rfc9728).
	Metadata string
	// MaxBody bounds the body in bytes; 0 means the listener's bound. A negative one is for
	// bodies that are streams of messages, which the handler bounds.
	MaxBody int64
	// BodyRemedy ends the refusal of a larger body, as "raise max_body of [gateways.acp]";
	// empty for none.
	BodyRemedy string
	// Streams is set for a route that may stay open: it counts among the streams, and may
	// be silent for as long as it likes.
	Streams bool
	// OwnPlaces is set for a stream that has a place at a listener of its own, which is
	// bounded there: it does not count among the streams.
	OwnPlaces bool
	Handler   http.Handler
}

// Proof is what a mount needs from a caller before its handler runs.
type Proof int

// The proofs.
const (
	// NoProof serves everybody, at the rate of an address.
	NoProof Proof = iota
	// BearerProof needs a token, or without one a client certificate of
	// [Options.Certificates]. The handler finds the caller with auth.PrincipalOf.
	BearerProof
	// HandlerProof leaves the proof to the handler, which may call [Handler.Identify].
	// Requests in which it does not count against the client's address. The handler also reads
	// a body that is announced to be too large, up to the mount's bound: it may refuse it in the
	// form of its protocol.
	HandlerProof
)

// mountMethods are the methods of a mount for all methods.
var mountMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// methods are the methods that a mount answers.
func (m Mount) methods() []string {
	switch m.Method {
	case "":
		return mountMethods
	case http.MethodGet:
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{m.Method}
}

// Mount adds routes. It is called before the first request. A route that collides with
// one that exists is an error.
func (h *Handler) Mount(list ...Mount) error {
	for _, m := range list {
		if err := h.mount(m); err != nil {
			return fmt.Errorf("mount %s: %w", strings.TrimSpace(m.Method+" "+m.Pattern), err)
		}
	}
	return nil
}

func (h *Handler) mount(m Mount) (err error) {
	if isSkepPath(m.Pattern) {
		return fmt.Errorf("paths below %s are the host's own", skepPrefix)
	}
	if slices.ContainsFunc(append(mailRoutes(), debugRoutes()...), func(rt route) bool { return rt.path == m.Pattern }) {
		return fmt.Errorf("the path is a route of the host")
	}
	if m.MaxBody < 0 && !m.Streams {
		return fmt.Errorf("only a stream has a body without a bound")
	}
	h.bodies.fit(m.MaxBody)
	defer func() {
		if p := recover(); p != nil { // httprouter panics over a collision
			err = fmt.Errorf("%v", p)
		}
	}()
	for _, method := range m.methods() {
		h.mailRoutes.Handle(method, m.Pattern, func(w http.ResponseWriter, q *http.Request, ps httprouter.Params) {
			for _, p := range ps {
				q.SetPathValue(p.Key, p.Value)
			}
			h.dispatchMount(w.(*recorder), q, m)
		})
	}
	return nil
}
