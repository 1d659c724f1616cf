package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"skep/host/internal/meter"
)

// AdminOptions of [NewAdmin]. The zero value is usable.
type AdminOptions struct {
	// Ready says why the host cannot take work, or nil. Without it the host
	// is always ready.
	Ready func(context.Context) error
	// Loopback and Hosts are as in [Options].
	Loopback bool
	Hosts    []string
	// Counters adds to the metrics what others have counted, Gauges what goes
	// up and down.
	Counters func() []Counter
	Gauges   func() []Gauge
	// Meters has what agents report; nil is nothing.
	Meters *meter.Board
	// Warnings are what an operator should see to, though the host is ready.
	Warnings func() []string
}

// Gauge is a metric that goes up and down.
type Gauge Counter

// Counter is a metric that only grows.
type Counter struct {
	Name, Help string
	Value      int64
	// Peers are the values of each peer, in the place of Value. There may be none.
	Peers []PeerValue
	// Ops are the values of each op and how its calls ended, in the place of Value.
	Ops []OpValue
}

// OpValue is what a metric has for one op and one code.
type OpValue struct {
	Op, Code string
	Value    int64
}

// PeerValue is what a metric has for one peer. Names must be those of the operator
// or of admins: each makes a series.
type PeerValue struct {
	Peer  string
	Value float64
}

// NewAdmin returns the handler of the operators' listener: whether the host
// lives and is ready, what it is, and what h has counted. It changes nothing
// and asks nobody who they are.
func NewAdmin(h *Handler, opt AdminOptions) http.Handler {
	a := &admin{h: h, opt: opt, names: newNames(opt.Loopback, opt.Hosts, h.opt.PublicURL)}
	pages := map[string]http.HandlerFunc{
		"/livez": a.live, "/readyz": a.ready, "/version": a.version, "/metrics": a.metrics,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, stall: h.opt.Stall, id: requestID(r), begun: time.Now()}
		guardAnswer(rec.Header(), r)
		rec.Header().Set("Cache-Control", "no-store")
		rec.limitReading(r)
		page, ok := pages[r.URL.Path]
		switch {
		case !a.names.take(r.Host):
			h.refuse(rec, errWrongHost)
		case !ok:
			h.refuse(rec, newFault(http.StatusNotFound, "Not Found"))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			rec.Header().Set("Allow", "GET, HEAD")
			h.refuse(rec, newFault(http.StatusMethodNotAllowed, "Method Not Allowed"))
		default:
			page(rec, r)
		}
	})
}

type admin struct {
	h     *Handler
	opt   AdminOptions
	names names
}

func (a *admin) live(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") }

func (a *admin) ready(w http.ResponseWriter, r *http.Request) {
	if a.opt.Ready != nil {
		if err := a.opt.Ready(r.Context()); err != nil {
			plain(w, http.StatusServiceUnavailable, "not ready: "+strings.ReplaceAll(err.Error(), "\n", "; ")+"\n")
			return
		}
	}
	text := "ready\n"
	if a.opt.Warnings != nil {
		for _, warning := range a.opt.Warnings() {
			text += "warning: " + strings.ReplaceAll(warning, "\n", "; ") + "\n"
		}
	}
	plain(w, http.StatusOK, text)
}

func (a *admin) version(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, newVersion(a.h.opt.Version))
}

func (a *admin) metrics(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	family(&b, "skep_build_info", "gauge", "The program that runs.",
		fmt.Sprintf("skep_build_info{version=%q,go=%q} 1\n", a.h.opt.Version, runtime.Version()))
	family(&b, "skep_start_time_seconds", "gauge", "When the host was started, in Unix time.",
		fmt.Sprintf("skep_start_time_seconds %.3f\n", float64(a.h.rt.Started().UnixMilli())/1e3))
	family(&b, "skep_goroutines", "gauge", "Goroutines that exist.", sample("skep_goroutines", int64(runtime.NumGoroutine())))
	a.h.counters.write(&b, a.h.streams.count())
	if a.opt.Counters != nil {
		for _, c := range a.opt.Counters() {
			family(&b, c.Name, "counter", c.Help, c.samples()...)
		}
	}
	if a.opt.Gauges != nil {
		for _, g := range a.opt.Gauges() {
			family(&b, g.Name, "gauge", g.Help, Counter(g).samples()...)
		}
	}
	if a.opt.Meters != nil {
		reported(&b, a.opt.Meters)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
