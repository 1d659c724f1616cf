package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"skep/host/internal/auth"
)

// route is one thing that can be asked for.
type route struct {
	method string
	// path is in the syntax of net/http's patterns.
	path string
	// need is the role it takes; empty means that anybody may ask.
	need  auth.Role
	serve func(*call) error
}

// mailRoutes are MAIL's (contract 1.2), on httprouter.
func mailRoutes() []route {
	return []route{
		{http.MethodGet, "/", "", (*call).root},
		{http.MethodGet, "/health", "", (*call).getHealth},
		{http.MethodPost, "/health", auth.Admin, (*call).postHealth},
		{http.MethodGet, "/status", auth.User, (*call).status},
		{http.MethodGet, "/whoami", auth.User, (*call).whoami},
		{http.MethodPost, "/message", auth.User, (*call).postMessage},
		{http.MethodGet, "/tasks", auth.User, (*call).tasks},
		{http.MethodGet, "/tasks/{task_id}", auth.User, (*call).taskByPath},
		{http.MethodGet, "/task", auth.User, (*call).taskByBody},
		{http.MethodGet, "/swarms", "", (*call).swarms},
		{http.MethodPost, "/swarms", auth.Admin, (*call).registerSwarm},
		{http.MethodPost, "/swarms/register", auth.Admin, (*call).registerSwarm},
		{http.MethodGet, "/swarms/dump", auth.Admin, (*call).dumpSwarm},
		{http.MethodPost, "/swarms/load", auth.Admin, (*call).loadSwarm},
		{http.MethodPost, "/interswarm/forward", auth.Agent, (*call).forward},
		{http.MethodPost, "/interswarm/back", auth.Agent, (*call).back},
		{http.MethodPost, "/interswarm/message", auth.User, (*call).interswarmMessage},
		{http.MethodPost, "/interswarm/response", "", (*call).interswarmResponse},
		{http.MethodGet, "/openapi.json", "", (*call).openAPI},
		{http.MethodGet, "/docs", "", (*call).docs},
	}
}

// ownPrefix is where skep's own routes begin.
const ownPrefix = "/skep/v1/"

// ownRoutes are skep's own, on net/http's multiplexer.
func ownRoutes() []route {
	return []route{
		{http.MethodGet, ownPrefix + "version", auth.User, (*call).version},
		{http.MethodGet, ownPrefix + "tasks", auth.User, (*call).listTasks},
		{http.MethodGet, ownPrefix + "tasks/{task_id}", auth.User, (*call).showTask},
		{http.MethodGet, ownPrefix + "tasks/{task_id}/events", auth.User, (*call).followTask},
		{http.MethodGet, ownPrefix + "tasks/{task_id}/history", auth.User, (*call).history},
		{http.MethodGet, ownPrefix + "tasks/{task_id}/turns", auth.User, (*call).turns},
		{http.MethodPost, ownPrefix + "tasks/{task_id}/cancel", auth.User, (*call).cancelTask},
		{http.MethodPost, ownPrefix + "agents/{agent}/release", auth.Operator, (*call).releaseAgent},
		{http.MethodPost, ownPrefix + "tenants/{tenant}/erase", auth.Operator, (*call).eraseTenant},
		{http.MethodGet, ownPrefix + "definition", auth.Admin, (*call).showDefinition},
		{http.MethodDelete, ownPrefix + "definition", auth.Admin, (*call).unloadDefinition},
		{http.MethodGet, ownPrefix + "peers", auth.Admin, (*call).listPeers},
		{http.MethodDelete, ownPrefix + "peers/{name}", auth.Admin, (*call).removePeer},
		{http.MethodPost, ownPrefix + "peers/{name}/ping", auth.Admin, (*call).pingPeer},
		{http.MethodGet, ownPrefix + "dead-letters", auth.Admin, (*call).deadLetters},
		{http.MethodPost, ownPrefix + "dead-letters/{id}/resend", auth.Admin, (*call).resend},
		{http.MethodGet, ownPrefix + "plan", auth.Operator, (*call).plan},
		{http.MethodPost, ownPrefix + "reload", auth.Operator, (*call).reload},
		{http.MethodPost, tokensPath, auth.Admin, (*call).createToken},
		{http.MethodGet, tokensPath, auth.Admin, (*call).listTokens},
		{http.MethodDelete, tokensPath + "/{token_id}", auth.Admin, (*call).revokeToken},
	}
}

// serves reports whether the route answers requests of a method: HEAD is
// answered wherever GET is.
func (rt route) serves(method string) bool {
	return rt.method == method || rt.method == http.MethodGet && method == http.MethodHead
}

// mailRouter repairs nothing: a path that is written differently is another
// path, and a request with a token or a body is never redirected.
func (h *Handler) mailRouter() http.Handler {
	r := httprouter.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = http.HandlerFunc(h.notFound)
	r.MethodNotAllowed = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		allowed := w.Header().Get("Allow")
		w.Header().Del("Allow")
		switch {
		case q.URL.Path == "*" && q.Method != http.MethodOptions:
			h.notFound(w, q)
			return
		case !h.opt.Debug && isDebug(q.URL.Path):
			h.noDebug(w, q)
			return
		}
		// httprouter adds OPTIONS, which it was told not to answer.
		methods := strings.Split(allowed, ", ")
		methods = slices.DeleteFunc(methods, func(m string) bool { return m == http.MethodOptions })
		h.notAllowed(w, q, strings.Join(methods, ", "))
	})
	for _, rt := range mailRoutes() {
		h.handle(r, rt, h.dispatch)
	}
	for _, rt := range debugRoutes() {
		h.handle(r, rt, h.gateDebug)
	}
	return r
}

// handle adds a route and what lets requests through to it.
func (h *Handler) handle(r *httprouter.Router, rt route, gate func(http.ResponseWriter, *http.Request, route)) {
	// The rest of the path, because a task's id may hold a slash and
	// httprouter matches the decoded path.
	path := strings.NewReplacer("{", "*", "}", "").Replace(rt.path)
	handle := func(w http.ResponseWriter, q *http.Request, ps httprouter.Params) {
		for _, p := range ps {
			if !oneSegment(q.URL.EscapedPath(), path) {
				h.notFound(w, q)
				return
			}
			q.SetPathValue(p.Key, strings.TrimPrefix(p.Value, "/"))
		}
		gate(w, q, rt)
	}
	r.Handle(rt.method, path, handle)
	if rt.method == http.MethodGet {
		r.Handle(http.MethodHead, path, handle)
	}
}

// oneSegment reports whether what a path, as it was sent, has in the place of
// pattern's last part is one segment.
func oneSegment(sent, pattern string) bool {
	rest := strings.TrimPrefix(sent, pattern[:strings.LastIndexByte(pattern, '*')])
	return rest != "" && !strings.Contains(rest, "/")
}

// ownMux has one entry a path and looks at the method itself, because the
// errors of net/http's multiplexer are plain text.
func (h *Handler) ownMux() http.Handler {
	byPath := map[string][]route{}
	for _, rt := range ownRoutes() {
		byPath[rt.path] = append(byPath[rt.path], rt)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", h.notFound)
	for path, routes := range byPath {
		mux.HandleFunc(path, func(w http.ResponseWriter, q *http.Request) {
			for _, rt := range routes {
				if rt.serves(q.Method) {
					h.dispatch(w, q, rt)
					return
				}
			}
			h.notAllowed(w, q, allow(routes))
		})
	}
	return mux
}

// allow lists the methods of some routes of one path.
func allow(routes []route) string {
	var methods []string
	for _, rt := range routes {
		methods = append(methods, rt.method)
		if rt.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

func (h *Handler) notFound(w http.ResponseWriter, r *http.Request) {
	if err := h.admitAddress(w.(*recorder)); err != nil {
		h.fail(w, r, err)
		return
	}
	h.fail(w, r, newFault(http.StatusNotFound, "Not Found"))
}

func (h *Handler) notAllowed(w http.ResponseWriter, r *http.Request, methods string) {
	if err := h.admitAddress(w.(*recorder)); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Allow", methods)
	h.fail(w, r, newFault(http.StatusMethodNotAllowed, "Method Not Allowed"))
}
