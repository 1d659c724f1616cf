package rest

import (
	"cmp"
	"net/http"

	"skep/host/internal/audit"
	"skep/host/internal/auth"
)

// Audit is told what matters to the security of the host. It is safe for
// concurrent use.
type Audit interface {
	// Record returns when the entry is durable.
	Record(e audit.Entry) error
	// Refused never waits.
	Refused(e audit.Entry)
}

var _ Audit = (*audit.Log)(nil)

// unheard is the audit of a handler that was given none.
type unheard struct{}

func (unheard) Record(audit.Entry) error { return nil }
func (unheard) Refused(audit.Entry)      {}

// audit notes a refusal. Whatever another swarm is refused counts.
func (h *Handler) audit(w *recorder, r *http.Request, f *fault) {
	peer := f != nil && w.who.Role == auth.Agent && f.status < http.StatusInternalServerError
	if f == nil || w.told || f.reason == "" && f.status != http.StatusUnauthorized && f.status != http.StatusTooManyRequests && !peer {
		return
	}
	e := entry(w, r)
	e.Act, e.Target, e.Reason = "request", cmp.Or(w.route, "no route"), cmp.Or(f.reason, f.detail)
	h.opt.Audit.Refused(e)
}

// entry has what is known of a request's caller.
func entry(w *recorder, r *http.Request) audit.Entry {
	e := audit.Entry{Address: w.from, RequestID: w.id}
	if w.who.Role != "" {
		e.Tenant, e.Principal = w.who.Tenant, string(w.who.Role)+":"+w.who.ID
	}
	return e
}

// did records an act of the caller's, which failed if err says so, and returns
// when the entry is durable. An act that cannot be recorded is not answered. One
// that was refused has changed nothing and costs what every refusal does.
func (c *call) did(act, target string, err error) error {
	e := entry(c.w, c.r)
	e.Act, e.Target, e.Outcome = act, target, audit.Done
	if err != nil {
		f, known := explain(err)
		if e.Outcome, e.Reason = audit.Failed, "internal error"; known {
			e.Reason = cmp.Or(f.reason, f.detail)
		}
		if known && f.status < http.StatusInternalServerError {
			c.w.told = true
			c.h.opt.Audit.Refused(e)
			return err
		}
	}
	if broken := c.h.opt.Audit.Record(e); broken != nil {
		return broken
	}
	return err
}

// cutOff notes that an answer that lasts was ended.
func (c *call) cutOff() {
	e := entry(c.w, c.r)
	e.Act, e.Target, e.Reason = "stream", c.w.route, errRevoked.Error()
	c.h.opt.Audit.Refused(e)
}
