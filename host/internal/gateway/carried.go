package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
)

// Refusal is an error that another attempt to carry a message would meet again.
type Refusal struct{ Reason string }

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

// StatusError is an HTTP status of a partner that is no answer.
type StatusError struct{ Code int }

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the partner answers %d %s", e.Code, http.StatusText(e.Code))
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
		return Carried{State: Later, Reason: status.Error()}
	case errors.As(err, &status) && status.Code < 500:
		return Carried{State: Refused, Reason: status.Error()}
	case errors.As(err, &op) && op.Op == "dial":
		return Carried{State: Later, Reason: "the partner cannot be reached"}
	}
	return Carried{State: Unanswered, Reason: err.Error()}
}
