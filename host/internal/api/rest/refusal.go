package rest

import (
	"cmp"
	"net/http"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/telemetry"
	"skep/host/internal/telemetry/pulse"
)

// causeWord is why a request was refused, in a word that has nothing of the request.
func (f *fault) causeWord() string { return cmp.Or(f.cause, statusCause(f.status)) }

// statusCause is the cause of a refusal of which the status says enough.
func statusCause(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "credentials"
	case http.StatusForbidden:
		return "role"
	case http.StatusNotFound, http.StatusGone:
		return "not_found"
	case http.StatusMethodNotAllowed:
		return "method"
	case http.StatusRequestTimeout:
		return "slow"
	case http.StatusConflict:
		return "conflict"
	case http.StatusRequestEntityTooLarge:
		return "too_large"
	case http.StatusMisdirectedRequest:
		return "wrong_host"
	case http.StatusTooManyRequests:
		return "limit"
	}
	if status >= http.StatusInternalServerError {
		return "unavailable"
	}
	return "invalid"
}

// recordRefusal shows a refusal in the audit log, in the host's log and in the feed, which has
// it from the audit log if that gets it. f is nil for a fault of the host.
func (h *Handler) recordRefusal(w *recorder, r *http.Request, f *fault) {
	audited := h.auditRefusal(w, r, f)
	if f == nil {
		return
	}
	e := auditEntry(w, r)
	e.Target = cmp.Or(w.route, "no route")
	now, cause := time.Now(), f.causeWord()
	skipped, ok := h.refusals.Admit(telemetry.LineKind{Tenant: e.Tenant, Text: refusalLine, Cause: cause}, now)
	if !ok {
		return
	}
	h.logRefusal(e, f, skipped)
	if audited || h.opt.Pulse == nil {
		return
	}
	event := pulse.Event{
		Kind: pulse.Refusal, Time: now.UTC(), Tenant: e.Tenant, Act: "request", Outcome: audit.Refused, Cause: cause, Key: f.key,
		Principal: e.Principal, Target: e.Target, RequestID: e.RequestID, Count: int64(1 + skipped),
	}
	if w.who.Role == auth.Operator {
		event.Tenant = "" // what an operator does concerns the host
	}
	h.opt.Pulse.Publish(event)
}

// refusalLine is the text of the log's lines about refusals.
const refusalLine = "a request was refused"

// logRefusal logs a refusal without its text, which may quote what the caller has sent.
func (h *Handler) logRefusal(e audit.Entry, f *fault, skipped int) {
	attrs := []any{"request_id", e.RequestID, "tenant", e.Tenant, "principal", e.Principal, "target", e.Target, "status", f.status, "cause", f.causeWord()}
	if f.key != "" {
		attrs = append(attrs, "key", f.key)
	}
	if skipped > 0 {
		attrs = append(attrs, "lines_skipped", skipped)
	}
	h.opt.Logger.Info(refusalLine, attrs...)
}
