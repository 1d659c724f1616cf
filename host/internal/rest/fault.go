package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/auth"
	"skep/host/internal/swarm"
)

// fault is a refusal as the caller sees it.
type fault struct {
	status int
	detail string
	// retry asks the caller to come again after so many seconds.
	retry int
	// challenge says which credentials are missing.
	challenge bool
	// reason is for the audit log: it says more than the caller is told. A
	// refusal of what was asked for, which is no 401 and no 429, is audited
	// when it has one.
	reason string
	// finish is the subject with which a waiting post ends.
	finish string
}

// Error returns the detail.
func (f *fault) Error() string { return f.detail }

func newFault(status int, format string, args ...any) *fault {
	return &fault{status: status, detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *fault {
	return newFault(http.StatusBadRequest, format, args...)
}

func noTask(id string) *fault { return newFault(http.StatusNotFound, "task '%s' not found", id) }

// internal tells nothing but where to look in the log.
func internal(id string) *fault {
	return newFault(http.StatusInternalServerError, "internal error, see request %s in the host's log", id)
}

// clientGone is logged for callers that have left; nobody reads it.
const clientGone = 499

// kinds is the table of what the swarm refuses, first match first. A refusal's
// own text goes before the one given here.
var kinds = []struct {
	kind   error
	status int
	retry  int
	text   string
}{
	{swarm.ErrDraining, http.StatusServiceUnavailable, 5, "the host is shutting down; come again after its next start"},
	{swarm.ErrFenced, http.StatusServiceUnavailable, 5, "another host has taken over"},
	{swarm.ErrErasing, http.StatusServiceUnavailable, 5, "the tenant is being erased; try again when that is done"},
	{swarm.ErrInvalid, http.StatusBadRequest, 0, "malformed request"},
	{swarm.ErrNotFound, http.StatusNotFound, 0, "not found"},
	{swarm.ErrForbidden, http.StatusUnauthorized, 0, "invalid role"},
	{swarm.ErrConflict, http.StatusConflict, 0, "conflict"},
	{swarm.ErrLimit, http.StatusTooManyRequests, 5, "too much at once"},
}

// explain turns any error into a fault; known is false for those that are the
// host's own.
func explain(err error) (f *fault, known bool) {
	if errors.As(err, &f) {
		return f, true
	}
	var gone *auth.Unavailable
	if errors.As(err, &gone) {
		return noAuthority(gone), true
	}
	for _, k := range kinds {
		if !errors.Is(err, k.kind) {
			continue
		}
		f := &fault{status: k.status, detail: k.text, retry: k.retry}
		var refusal *swarm.Refusal
		if errors.As(err, &refusal) {
			f.detail = refusal.Text
			if refusal.Retry > 0 {
				f.retry = seconds(refusal.Retry)
			}
		}
		return f, true
	}
	return nil, false
}

// noAuthority says which of those who could tell who the caller is does not
// answer. How it fails is for the log.
func noAuthority(gone *auth.Unavailable) *fault {
	f := newFault(http.StatusServiceUnavailable, "who you are cannot be told now: %s does not answer as it should; come again later", gone.Authority)
	f.retry = max(1, seconds(gone.Retry))
	f.reason = gone.Error()
	return f
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// fail answers a request with an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	rec := w.(*recorder)
	if gone := r.Context().Err(); gone != nil && errors.Is(err, context.Cause(r.Context())) {
		// Without this net/http would answer 200 to one who can still read.
		rec.status = clientGone
		panic(http.ErrAbortHandler)
	}
	f, known := explain(err)
	h.audit(rec, r, f)
	if !known {
		h.opt.Logger.Error("request failed", "request_id", rec.id, "route", rec.route, "err", err)
		f = internal(rec.id)
	}
	h.refuse(rec, f)
}

// refuse writes the error envelope.
func (h *Handler) refuse(w *recorder, f *fault) {
	w.hurry()
	head := w.Header()
	if f.retry > 0 {
		head.Set("Retry-After", strconv.Itoa(f.retry))
	}
	if f.challenge {
		head.Set("WWW-Authenticate", "Bearer")
	}
	if f.finish != "" {
		head.Set(finishHeader, f.finish)
	}
	reply(w, f.status, struct {
		Detail string `json:"detail"`
	}{f.detail})
}
