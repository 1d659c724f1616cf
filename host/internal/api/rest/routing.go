package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"
)

// serves reports whether the route answers a method. GET routes answer HEAD.
func (rt route) serves(method string) bool {
	return rt.method == method || rt.method == http.MethodGet && method == http.MethodHead
}

// mailRouter redirects nothing: another spelling of a path is another path, and a
// request with a token or a body is never redirected.
func (h *Handler) mailRouter() *httprouter.Router {
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
		case !h.opt.Debug && isDebugPath(q.URL.Path):
			h.debugNotFound(w, q)
			return
		}
		// httprouter adds OPTIONS although HandleOPTIONS is off.
		methods := strings.Split(allowed, ", ")
		methods = slices.DeleteFunc(methods, func(m string) bool { return m == http.MethodOptions })
		h.notAllowed(w, q, strings.Join(methods, ", "))
	})
	for _, rt := range mailRoutes() {
		h.addRoute(r, rt, h.dispatch)
	}
	for _, rt := range debugRoutes() {
		h.addRoute(r, rt, h.dispatchDebug)
	}
	return r
}

// addRoute adds a route with its dispatcher.
func (h *Handler) addRoute(r *httprouter.Router, rt route, gate func(http.ResponseWriter, *http.Request, route)) {
	// A catch-all parameter, because a task's id may hold a slash and httprouter
	// matches the decoded path.
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

// oneSegment reports whether the last part of pattern matches a single segment of
// the path as sent.
func oneSegment(sent, pattern string) bool {
	rest := strings.TrimPrefix(sent, pattern[:strings.LastIndexByte(pattern, '*')])
	return rest != "" && !strings.Contains(rest, "/")
}

// skepMux has one entry per path and checks the method itself, because the errors
// of net/http's multiplexer are plain text.
func (h *Handler) skepMux() http.Handler {
	byPath := map[string][]route{}
	for _, rt := range skepRoutes() {
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
			h.notAllowed(w, q, allowedMethods(routes))
		})
	}
	return mux
}

// allowedMethods returns the Allow header for the routes of one path.
func allowedMethods(routes []route) string {
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
