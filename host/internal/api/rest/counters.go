package rest

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// counters count the requests of the public listener. The zero value is ready.
type counters struct {
	unauthenticated atomic.Int64
	limited         atomic.Int64
	requests        sync.Map // requestKey → *atomic.Int64
}

// requestKey is a route and a status; their number is bounded.
type requestKey struct {
	route  string
	status int
}

// countRequest counts and logs a finished request.
func (h *Handler) countRequest(w *recorder, r *http.Request) {
	status := w.status
	if status == 0 {
		status = http.StatusOK
	}
	key := requestKey{w.route, status}
	n, ok := h.counters.requests.Load(key)
	if !ok {
		n, _ = h.counters.requests.LoadOrStore(key, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
	h.opt.Logger.LogAttrs(r.Context(), slog.LevelDebug, "request",
		slog.String("request_id", w.id), slog.String("method", r.Method), slog.String("route", w.route),
		slog.Int("status", status), slog.String("principal", w.who.String()), slog.String("remote", r.RemoteAddr),
		slog.Float64("duration_ms", float64(time.Since(w.start))/float64(time.Millisecond)))
}

// write renders the counters in Prometheus' text format.
func (n *counters) write(w io.Writer, streams int64) {
	var lines []string
	n.requests.Range(func(k, v any) bool {
		key := k.(requestKey)
		method, path, _ := strings.Cut(key.route, " ")
		lines = append(lines, fmt.Sprintf("skep_http_requests_total{method=%q,route=%q,code=\"%d\"} %d\n",
			method, path, key.status, v.(*atomic.Int64).Load()))
		return true
	})
	slices.Sort(lines)
	writeFamily(w, "skep_http_requests_total", "counter", "Requests answered, by route and status.", lines...)
	writeFamily(w, "skep_http_streams", "gauge", "Event streams that are open.", sample("skep_http_streams", streams))
	writeFamily(w, "skep_auth_failures_total", "counter", "Requests with missing or unknown credentials.",
		sample("skep_auth_failures_total", n.unauthenticated.Load()))
	writeFamily(w, "skep_ratelimit_rejected_total", "counter", "Requests refused because their caller made too many.",
		sample("skep_ratelimit_rejected_total", n.limited.Load()))
}

func sample(name string, n int64) string { return fmt.Sprintf("%s %d\n", name, n) }

// labelEscaper escapes a label's value
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (c Counter) samples() (lines []string) {
	if c.Peers == nil && c.Ops == nil {
		return []string{sample(c.Name, c.Value)}
	}
	for _, o := range c.Ops {
		lines = append(lines, fmt.Sprintf("%s{op=%q,code=%q} %d\n", c.Name, o.Op, o.Code, o.Value))
	}
	for _, p := range c.Peers {
		lines = append(lines, fmt.Sprintf("%s{peer=\"%s\"} %g\n", c.Name, labelEscaper.Replace(p.Peer), p.Value))
	}
	return lines
}

// writeFamily writes one metric with its samples.
func writeFamily(w io.Writer, name, kind, help string, samples ...string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s", name, help, name, kind, strings.Join(samples, ""))
}
