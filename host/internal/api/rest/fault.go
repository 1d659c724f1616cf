package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// fault is a refusal for the caller.
type fault struct {
	status int
	detail string
	// retryAfter is the Retry-After header in seconds; 0 means none.
	retryAfter int
	// challenge is the WWW-Authenticate header, if any.
	challenge string
	// reason is for the audit log only and may hold more than detail. A refusal
	// that is neither 401 nor 429 is audited when it has a reason.
	reason string
	// finishSubject is the X-MAIL-Finish-Subject header.
	finishSubject string
	// cause is a word for the log and the feed, empty for the status's own. key is the key of
	// swarm.toml that holds the limit, if one does.
	cause, key string
}

// Error returns the detail.
func (f *fault) Error() string { return f.detail }

func newFault(status int, format string, args ...any) *fault {
	return &fault{status: status, detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *fault {
	return newFault(http.StatusBadRequest, format, args...)
}

func taskNotFound(id string) *fault { return newFault(http.StatusNotFound, "task '%s' not found", id) }

// internalFault returns the only text for faults of the host: the request id to
// look up in the log.
func internalFault(id string) *fault {
	return newFault(http.StatusInternalServerError, "internal error, see request %s in the host's log", id)
}

// clientGone is the logged status of a request whose caller left (nginx's 499).
// It is never sent.
const clientGone = 499

// faultTable maps refusals of package swarm to statuses; the first match counts.
// The text of a *swarm.Refusal replaces the text here.
var faultTable = []struct {
	kind   error
	status int
	retry  int
	cause  string
	text   string
}{
	{swarm.ErrDraining, http.StatusServiceUnavailable, 5, "stopping", "the host is shutting down; come again after its next start"},
	{swarm.ErrElsewhere, http.StatusServiceUnavailable, 1, "", "no host works on the task now; come again"},
	{swarm.ErrFenced, http.StatusServiceUnavailable, 5, "", "another host has taken over"},
	{swarm.ErrUnavailable, http.StatusServiceUnavailable, 5, "store", "the host's database does not answer now; come again"},
	{swarm.ErrErasing, http.StatusServiceUnavailable, 5, "erasing", "the tenant is being erased; try again when that is done"},
	{swarm.ErrInvalid, http.StatusBadRequest, 0, "", "malformed request"},
	{swarm.ErrNotFound, http.StatusNotFound, 0, "", "not found"},
	{swarm.ErrForbidden, http.StatusUnauthorized, 0, "role", "invalid role"},
	{swarm.ErrConflict, http.StatusConflict, 0, "", "conflict"},
	{swarm.ErrLimit, http.StatusTooManyRequests, 5, "", "too much at once"},
}

// toFault converts an error. known is false for a fault of the host itself.
func toFault(err error) (f *fault, known bool) {
	if errors.As(err, &f) {
		return f, true
	}
	var gone *auth.Unavailable
	if errors.As(err, &gone) {
		return authUnavailable(gone), true
	}
	for _, k := range faultTable {
		if !errors.Is(err, k.kind) {
			continue
		}
		f := &fault{status: k.status, detail: k.text, retryAfter: k.retry, cause: k.cause}
		var refusal *swarm.Refusal
		if errors.As(err, &refusal) {
			f.detail, f.cause, f.key = refusal.Text, cmp.Or(refusal.Cause, f.cause), refusal.Key
			if refusal.Retry > 0 {
				f.retryAfter = ceilSeconds(refusal.Retry)
			}
		}
		return f, true
	}
	return nil, false
}

// authUnavailable names the auth backend that does not answer. Its error is for
// the log only.
func authUnavailable(gone *auth.Unavailable) *fault {
	f := newFault(http.StatusServiceUnavailable, "who you are cannot be told now: %s does not answer as it should; come again later", gone.Backend)
	f.retryAfter = max(1, ceilSeconds(gone.Retry))
	f.reason, f.cause = gone.Error(), "auth"
	return f
}

// ceilSeconds rounds up.
func ceilSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// fail answers a request with an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	rec := w.(*recorder)
	if gone := r.Context().Err(); gone != nil && errors.Is(err, context.Cause(r.Context())) {
		// Without this net/http would answer 200 to a caller that can still read.
		rec.status = clientGone
		panic(http.ErrAbortHandler)
	}
	f, known := toFault(err)
	h.recordRefusal(rec, r, f)
	if !known {
		h.opt.Logger.Error("request failed", "request_id", rec.id, "route", rec.route, "err", err)
		f = internalFault(rec.id)
	}
	h.replyFault(rec, f)
}

// replyFault writes the error as JSON.
func (h *Handler) replyFault(w *recorder, f *fault) {
	w.shortenDrain()
	head := w.Header()
	if f.retryAfter > 0 {
		head.Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if f.challenge != "" {
		head.Set("WWW-Authenticate", f.challenge)
	}
	if f.finishSubject != "" {
		head.Set(finishHeader, f.finishSubject)
	}
	reply(w, f.status, struct {
		Detail string `json:"detail"`
	}{f.detail})
}
