package rest

import "sync/atomic"

// Routes lists every route as "METHOD path".
func Routes() []string {
	var all []string
	for _, rt := range append(mailRoutes(), ownRoutes()...) {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// Answered lists what a handler has answered: route and status.
func (h *Handler) Answered() map[string][]int {
	got := map[string][]int{}
	h.counters.requests.Range(func(k, v any) bool {
		if key := k.(answered); v.(*atomic.Int64).Load() > 0 {
			got[key.route] = append(got[key.route], key.status)
		}
		return true
	})
	return got
}

// Streams counts the streams that are open.
func (h *Handler) Streams() int64 { return h.counters.streams.Load() }

var Address = address
