package rest

import (
	"net/http"
	"strings"

	"skep/host/internal/auth"
)

// debugRoutes show how the swarm is made, and stand in for a viewer's backend.
// They are there when [server] debug is on, and then for those who have a key.
func debugRoutes() []route {
	return []route{
		{http.MethodPost, "/responses", auth.User, (*call).postResponses},
		{http.MethodGet, "/ui/agents", auth.User, (*call).uiAgents},
		{http.MethodPost, "/ui/message", auth.User, (*call).uiMessage},
		{http.MethodGet, "/ui/tasks", auth.User, (*call).uiTasks},
		{http.MethodGet, "/ui/task/{task_id}", auth.User, (*call).uiTask},
		{http.MethodGet, "/ui/task-summary/{task_id}", auth.User, (*call).uiSummary},
		{http.MethodGet, "/ui/dump-events", auth.User, (*call).uiDump},
	}
}

// gateDebug answers debug routes where they are off, before it looks at who
// calls (contract 1.1).
func (h *Handler) gateDebug(w http.ResponseWriter, r *http.Request, rt route) {
	if h.opt.Debug {
		h.dispatch(w, r, rt)
		return
	}
	w.(*recorder).route = rt.method + " " + rt.path
	h.noDebug(w, r)
}

// isDebug reports whether a path is one of those routes'.
func isDebug(path string) bool { return path == "/responses" || strings.HasPrefix(path, "/ui/") }

// noDebug answers where debug routes are off, whatever the method.
func (h *Handler) noDebug(w http.ResponseWriter, r *http.Request) {
	if err := h.admitAddress(w.(*recorder)); err != nil {
		h.fail(w, r, err)
		return
	}
	h.fail(w, r, newFault(http.StatusNotFound, "Not found"))
}
