package rest

import (
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
)

// Routes lists every route as "METHOD path".
func Routes() []string {
	var all []string
	for _, rt := range slices.Concat(mailRoutes(), debugRoutes(), ownRoutes()) {
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
func (h *Handler) Streams() int64 { return h.streams.count() }

// Address is who shares a bucket with a caller behind some proxies.
func Address(r *http.Request, trusted ...netip.Prefix) string { return proxies(trusted).caller(r) }

// OpenStreams takes places for streams that no test has to hold open.
func (h *Handler) OpenStreams(who string, n int) error {
	for range n {
		if _, err := h.streams.enter(who); err != nil {
			return err
		}
	}
	return nil
}

// DebugRoutes lists those that [server] debug opens.
func DebugRoutes() (all []string) {
	for _, rt := range debugRoutes() {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}
