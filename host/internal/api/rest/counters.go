package rest

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/telemetry"
)

// counters count the requests of the public listener.
type counters struct {
	unauthenticated, limited prometheus.Counter
	// requests are counted by route and status, whose number is bounded; their durations
	// by route.
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	// forwards are the times of requests that were sent to the host that works on their task, by outcome.
	forwards *prometheus.HistogramVec
}

func newCounters() counters {
	return counters{
		unauthenticated: prometheus.NewCounter(prometheus.CounterOpts{Name: "skep_auth_failures_total", Help: "Requests with missing or unknown credentials."}),
		limited:         prometheus.NewCounter(prometheus.CounterOpts{Name: "skep_ratelimit_rejected_total", Help: "Requests refused because their caller made too many."}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "skep_http_requests_total", Help: "Requests answered, by route and status."},
			[]string{"method", "route", "code"}),
		durations: prometheus.NewHistogramVec(telemetry.Durations("skep_http_request_duration_seconds",
			"Time from a request to the end of its answer, by route. A stream ends with its reader."), []string{"method", "route"}),
		forwards: prometheus.NewHistogramVec(telemetry.Durations("skep_cluster_forward_duration_seconds",
			"Time from a request that was sent to another host of the cluster to the end of its answer, by outcome."), []string{"outcome"}),
	}
}

// countRequest counts and logs a finished request.
func (h *Handler) countRequest(w *recorder, r *http.Request) {
	status := w.status
	if status == 0 {
		status = http.StatusOK
	}
	took := time.Since(w.start)
	method, path, ok := strings.Cut(w.route, " ")
	if !ok { // refused before a route was found
		method, path = "none", "none"
	}
	h.counters.requests.WithLabelValues(method, path, strconv.Itoa(status)).Inc()
	h.counters.durations.WithLabelValues(method, path).Observe(took.Seconds())
	h.opt.Logger.LogAttrs(r.Context(), slog.LevelDebug, "request",
		slog.String("request_id", w.id), slog.String("method", r.Method), slog.String("route", w.route),
		slog.Int("status", status), slog.String("principal", w.who.String()), slog.String("remote", r.RemoteAddr),
		slog.Float64("duration_ms", float64(took)/float64(time.Millisecond)))
}

// countForward counts a request that began to be sent to another host at a time.
func (h *Handler) countForward(began time.Time, reached bool, err error) {
	outcome := "answered"
	switch {
	case errors.Is(err, errOwnerChanged):
		outcome = "moved"
	case err != nil && reached:
		outcome = "broken"
	case err != nil:
		outcome = "unreachable"
	}
	h.counters.forwards.WithLabelValues(outcome).Observe(time.Since(began).Seconds())
}

// RegisterMetrics adds the metrics of the public listener's requests, and of the program.
func (h *Handler) RegisterMetrics(to prometheus.Registerer) error {
	all := []prometheus.Collector{
		h.counters.unauthenticated, h.counters.limited, h.counters.requests, h.counters.durations,
		telemetry.Collector(func() []telemetry.Family {
			return []telemetry.Family{
				{Name: "skep_build_info", Help: "The program that runs.", Kind: prometheus.GaugeValue, Labels: []string{"version", "go"},
					Samples: []telemetry.Sample{{Labels: []string{h.opt.Version, runtime.Version()}, Value: 1}}},
				telemetry.Gauge("skep_start_time_seconds", "When the host was started, in Unix time.", float64(h.swarms.Started().UnixMilli())/1e3),
				telemetry.Gauge("skep_goroutines", "Goroutines that exist.", float64(runtime.NumGoroutine())),
				telemetry.Gauge("skep_http_streams", "Event streams that are open.", float64(h.openStreams.count())),
			}
		}),
	}
	if h.opt.OtherHosts != nil {
		all = append(all, h.counters.forwards)
	}
	for _, c := range all {
		if err := to.Register(c); err != nil {
			return fmt.Errorf("register the metrics of requests: %w", err)
		}
	}
	return nil
}
