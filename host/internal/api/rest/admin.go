package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"skep/host/internal/swarm/metrics"
)

// AdminOptions of [NewAdmin]. The zero value is usable.
type AdminOptions struct {
	// Ready returns why the host cannot take work, or nil. A nil Ready means
	// always ready.
	Ready func(context.Context) error
	// Loopback and Hosts are as in [Options].
	Loopback bool
	Hosts    []string
	// Counters and Gauges return further metrics of the host.
	Counters func() []Counter
	Gauges   func() []Gauge
	// AgentMetrics holds what agents report; nil means none.
	AgentMetrics *metrics.Registry
	// Warnings returns faults that do not keep the host from being ready.
	Warnings func() []string
}

// Gauge is a metric that rises and falls.
type Gauge Counter

// Counter is a metric that only grows.
type Counter struct {
	Name, Help string
	Value      int64
	// Peers holds one value per peer, instead of Value. It may be empty.
	Peers []PeerValue
	// Ops holds one value per op and code, instead of Value.
	Ops []OpValue
}

// OpValue is the value of a metric for one op and one result code.
type OpValue struct {
	Op, Code string
	Value    int64
}

// PeerValue is the value of a metric for one peer. Each name makes a time series,
// so names come from the operator or from admins only.
type PeerValue struct {
	Peer  string
	Value float64
}

// NewAdmin returns the handler of the operators' listener: liveness, readiness,
// version and metrics of h. Its routes are read-only and need no credentials.
func NewAdmin(h *Handler, opt AdminOptions) http.Handler {
	a := &admin{h: h, opt: opt, hosts: newAllowedHosts(opt.Loopback, opt.Hosts, h.opt.PublicURL)}
	pages := map[string]http.HandlerFunc{
		"/livez": a.live, "/readyz": a.ready, "/version": a.version, "/metrics": a.metrics,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, stall: h.opt.Stall, id: requestID(r), start: time.Now()}
		setSecurityHeaders(rec.Header(), r)
		rec.Header().Set("Cache-Control", "no-store")
		rec.limitBodyTime(r)
		page, ok := pages[r.URL.Path]
		switch {
		case !a.hosts.allows(r.Host):
			h.replyFault(rec, errWrongHost)
		case !ok:
			h.replyFault(rec, newFault(http.StatusNotFound, "Not Found"))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			rec.Header().Set("Allow", "GET, HEAD")
			h.replyFault(rec, newFault(http.StatusMethodNotAllowed, "Method Not Allowed"))
		default:
			page(rec, r)
		}
	})
}

type admin struct {
	h     *Handler
	opt   AdminOptions
	hosts allowedHosts
}

func (a *admin) live(w http.ResponseWriter, _ *http.Request) { replyText(w, http.StatusOK, "ok\n") }

func (a *admin) ready(w http.ResponseWriter, r *http.Request) {
	if a.opt.Ready != nil {
		if err := a.opt.Ready(r.Context()); err != nil {
			replyText(w, http.StatusServiceUnavailable, "not ready: "+strings.ReplaceAll(err.Error(), "\n", "; ")+"\n")
			return
		}
	}
	text := "ready\n"
	if a.opt.Warnings != nil {
		for _, warning := range a.opt.Warnings() {
			text += "warning: " + strings.ReplaceAll(warning, "\n", "; ") + "\n"
		}
	}
	replyText(w, http.StatusOK, text)
}

func (a *admin) version(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, newVersion(a.h.opt.Version))
}

func (a *admin) metrics(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	writeFamily(&b, "skep_build_info", "gauge", "The program that runs.",
		fmt.Sprintf("skep_build_info{version=%q,go=%q} 1\n", a.h.opt.Version, runtime.Version()))
	writeFamily(&b, "skep_start_time_seconds", "gauge", "When the host was started, in Unix time.",
		fmt.Sprintf("skep_start_time_seconds %.3f\n", float64(a.h.swarms.Started().UnixMilli())/1e3))
	writeFamily(&b, "skep_goroutines", "gauge", "Goroutines that exist.", sample("skep_goroutines", int64(runtime.NumGoroutine())))
	a.h.counters.write(&b, a.h.openStreams.count())
	if a.opt.Counters != nil {
		for _, c := range a.opt.Counters() {
			writeFamily(&b, c.Name, "counter", c.Help, c.samples()...)
		}
	}
	if a.opt.Gauges != nil {
		for _, g := range a.opt.Gauges() {
			writeFamily(&b, g.Name, "gauge", g.Help, Counter(g).samples()...)
		}
	}
	if a.opt.AgentMetrics != nil {
		writeAgentMetrics(&b, a.opt.AgentMetrics)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}

func replyText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
