package gateway

import (
	"cmp"
	"context"
	"errors"

	"skep/host/internal/swarm"
)

// CauseInvalid is the cause of a refusal of which no more is said.
const CauseInvalid = "invalid"

// causes are the words of kinds of errors, those that logs of requests have; the first match counts.
var causes = []struct {
	kind  error
	cause string
}{
	{swarm.ErrQuota, "quota"}, {swarm.ErrErasing, "erasing"}, {swarm.ErrUnavailable, "store"}, {swarm.ErrFenced, "unavailable"},
	{ErrUnknown, "not_found"}, {ErrConflict, "conflict"}, {ErrDenied, "role"}, {ErrBusy, "limit"}, {ErrDraining, "stopping"}, {ErrStreamLost, "conflict"},
	{swarm.ErrNotFound, "not_found"}, {swarm.ErrConflict, "conflict"}, {swarm.ErrForbidden, "role"}, {swarm.ErrLimit, "limit"}, {swarm.ErrDraining, "stopping"},
	{context.DeadlineExceeded, "unavailable"}, {context.Canceled, "unavailable"},
}

// causer is a gateway's own fault that has such a word; empty for [CauseInvalid].
type causer interface{ Cause() string }

// refusalCause is why a message was refused, in a word that has nothing of the message, and the key of
// the limit, if one is the reason.
func refusalCause(err error) (cause, key string) {
	var rate *RateError
	if errors.As(err, &rate) {
		return "rate", ""
	}
	var refusal *swarm.Refusal
	var own causer
	if errors.As(err, &refusal) {
		cause, key = refusal.Cause, refusal.Key
	}
	if cause == "" && errors.As(err, &own) {
		cause = own.Cause()
	}
	for _, k := range causes {
		if errors.Is(err, k.kind) {
			return cmp.Or(cause, k.cause), key
		}
	}
	return cmp.Or(cause, CauseInvalid), key
}
