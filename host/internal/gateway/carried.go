package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// ErrRedirect is returned for a request that a partner redirects.
var ErrRedirect = errors.New("it redirects, which is not followed; write where it is into url")

// Refusal is an error that another attempt to carry a message would meet again.
type Refusal struct{ Reason string }

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

// Refuse returns a [Refusal].
func Refuse(format string, args ...any) error {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}

// StatusError is an HTTP status of a partner that is no answer.
type StatusError struct {
	Code int
	// RetryAfter is the pause that the partner wants before another request, 0 for none.
	RetryAfter time.Duration
}

// StatusOf is the error of a response that is no answer.
func StatusOf(resp *http.Response) *StatusError {
	return &StatusError{resp.StatusCode, egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now())}
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the partner answers %d %s", e.Code, http.StatusText(e.Code))
}

// WaitIn is the pause that the partner wants in an error, 0 for none.
func WaitIn(err error) time.Duration {
	if status := (*StatusError)(nil); errors.As(err, &status) {
		return status.RetryAfter
	}
	return 0
}

// CarriedAfter returns what the error of an attempt means for its outbox message; nil is
// that it was taken.
func CarriedAfter(err error) Carried {
	var status *StatusError
	var op *net.OpError
	switch {
	case err == nil:
		return Carried{State: Taken}
	case errors.As(err, new(*Refusal)), errors.Is(err, ErrDenied), errors.Is(err, ErrInvalid):
		return Carried{State: Refused, Reason: err.Error()}
	case errors.As(err, &status) && (status.Code == http.StatusTooManyRequests || status.Code == http.StatusServiceUnavailable):
		return Carried{State: Later, Reason: status.Error(), Wait: status.RetryAfter}
	case errors.As(err, &status) && status.Code < 500:
		return Carried{State: Refused, Reason: status.Error()}
	case errors.As(err, &op) && op.Op == "dial":
		return Carried{State: Later, Reason: "the partner cannot be reached"}
	case errors.Is(err, ErrBusy), errors.Is(err, state.ErrFull):
		return Carried{State: Later, Reason: err.Error()}
	}
	return Carried{State: Unanswered, Reason: err.Error()}
}

// Since returns what an outcome means after what its attempt has done: before sending was
// tried the message can be sent later; after the partner has taken it, it is unanswered.
func (c Carried) Since(tried, taken bool) Carried {
	switch {
	case !tried && c.State == Unanswered:
		c.State = Later
	case taken && c.State == Later:
		c.State = Unanswered
	}
	return c
}

// ReportsPause reports whether a message only reports that the task waits for people, which is
// no answer.
func ReportsPause(d swarm.Delivery) bool {
	return d.Wrapper.Type == mail.Response && d.Wrapper.Payload.Subject == mail.SubjectBreakpointToolCall
}

// Pause waits, and reports whether ctx goes on.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
