package rest

import (
	"net/http"
	"strings"
)

// dispatchDebug answers 404 where debug routes are off, before authentication.
func (h *Handler) dispatchDebug(w http.ResponseWriter, r *http.Request, rt route) {
	if h.opt.Debug {
		h.dispatch(w, r, rt)
		return
	}
	w.(*recorder).route = rt.method + " " + rt.path
	h.debugNotFound(w, r)
}

// isDebugPath reports whether a path is under a debug route.
func isDebugPath(path string) bool { return path == "/responses" || strings.HasPrefix(path, "/ui/") }

// debugNotFound answers any method where debug routes are off.
func (h *Handler) debugNotFound(w http.ResponseWriter, r *http.Request) {
	if err := h.admitAddress(w.(*recorder)); err != nil {
		h.fail(w, r, err)
		return
	}
	h.fail(w, r, newFault(http.StatusNotFound, "Not found"))
}
