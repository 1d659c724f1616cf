package rest

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// AdminOptions of [NewAdmin]. The zero value is usable.
type AdminOptions struct {
	// Ready returns why the host cannot take work, or nil. A nil Ready means
	// always ready.
	Ready func(context.Context) error
	// Loopback and Hosts are as in [Options].
	Loopback bool
	Hosts    []string
	// Metrics serves /metrics; nil means that there is no such route.
	Metrics http.Handler
	// Warnings returns faults that do not keep the host from being ready.
	Warnings func() []string
}

// NewAdmin returns the handler of the operators' listener: liveness, readiness,
// version and metrics of h. Its routes are read-only and need no credentials.
func NewAdmin(h *Handler, opt AdminOptions) http.Handler {
	a := &admin{h: h, opt: opt, hosts: newAllowedHosts(opt.Loopback, opt.Hosts, h.opt.PublicURL)}
	pages := map[string]http.HandlerFunc{
		"/livez": a.live, "/readyz": a.ready, "/version": a.version,
	}
	if opt.Metrics != nil {
		pages["/metrics"] = opt.Metrics.ServeHTTP
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

func replyText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
