package rest

import (
	"cmp"
	"net/http"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
)

// Audit records security-relevant acts and refusals. It is safe for concurrent
// use.
type Audit interface {
	// Record returns when the entry is durable.
	Record(e audit.Entry) error
	// RecordRefusal never blocks.
	RecordRefusal(e audit.Entry)
}

var _ Audit = (*audit.Log)(nil)

// noAudit drops all entries.
type noAudit struct{}

func (noAudit) Record(audit.Entry) error  { return nil }
func (noAudit) RecordRefusal(audit.Entry) {}

// auditRefusal records a refusal: 401, 429, any with a reason, and every refusal
// of another swarm below 500. It reports whether the audit log gets it.
func (h *Handler) auditRefusal(w *recorder, r *http.Request, f *fault) (recorded bool) {
	if w.audited {
		return true
	}
	peer := f != nil && w.who.Role == auth.Agent && f.status < http.StatusInternalServerError
	if f == nil || f.reason == "" && f.status != http.StatusUnauthorized && f.status != http.StatusTooManyRequests && !peer {
		return false
	}
	e := auditEntry(w, r)
	e.Act, e.Target, e.Reason = "request", cmp.Or(w.route, "no route"), cmp.Or(f.reason, f.detail)
	e.Cause, e.Key = f.causeWord(), f.key
	h.opt.Audit.RecordRefusal(e)
	return true
}

// auditEntry returns an entry with the caller and the request id.
func auditEntry(w *recorder, r *http.Request) audit.Entry {
	e := audit.Entry{Address: w.address, RequestID: w.id}
	if w.who.Role != "" {
		e.Tenant, e.Principal = w.who.Tenant, string(w.who.Role)+":"+w.who.ID
	}
	return e
}

// auditAct records an act of the caller and returns when the entry is durable.
// err is the act's failure, or nil. If the entry cannot be written, the error of
// the log is the answer. A refused act changed nothing; it is recorded as any
// refusal, without waiting.
func (c *call) auditAct(act, target string, err error) error {
	e := auditEntry(c.w, c.r)
	e.Act, e.Target, e.Outcome = act, target, audit.Done
	if err != nil {
		f, known := toFault(err)
		if e.Outcome, e.Reason = audit.Failed, "internal error"; known {
			e.Reason = cmp.Or(f.reason, f.detail)
		}
		if known && f.status < http.StatusInternalServerError {
			c.w.audited = true
			e.Cause, e.Key = f.causeWord(), f.key
			c.h.opt.Audit.RecordRefusal(e)
			return err
		}
	}
	if broken := c.h.opt.Audit.Record(e); broken != nil {
		return broken
	}
	return err
}

// auditCutOff records that a stream was ended because its token is no longer
// valid.
func (c *call) auditCutOff() {
	e := auditEntry(c.w, c.r)
	e.Act, e.Target, e.Reason = "stream", c.w.route, errRevoked.Error()
	e.Cause = "credentials"
	c.h.opt.Audit.RecordRefusal(e)
}
