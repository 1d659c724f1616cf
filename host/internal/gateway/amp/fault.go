package amp

import (
	"context"
	"errors"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// retryAfter is when a message that a limit refused may be taken.
const retryAfter = 10 * time.Second

// kind is an error of the runtime as the protocol has it.
type kind struct {
	err    error
	code   message.Code
	reason string
	retry  time.Duration
}

var kinds = []kind{
	{gateway.ErrUnknown, message.AgentNotFound, "", 0},
	{gateway.ErrConflict, message.InvalidSchema, message.ReasonConflict, 0},
	{gateway.ErrDenied, message.AuthenticationFailed, message.ReasonForbidden, 0},
	{gateway.ErrInvalid, message.InvalidSchema, message.ReasonMalformed, 0},
	{gateway.ErrBusy, message.RateLimitExceeded, "", retryAfter},
	{gateway.ErrDraining, message.InsufficientResources, message.ReasonDraining, retryAfter},
	{gateway.ErrElsewhere, message.InsufficientResources, message.ReasonUnreachable, retryAfter},
}

// faultOf returns an error as its sender may see it. A fault of the host is logged and
// shown without its text.
func (g *Gateway) faultOf(err error) *message.Fault {
	if f := new(message.Fault); errors.As(err, &f) {
		return f
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &message.Fault{Code: k.code, Reason: k.reason, Text: err.Error(), RetryAfter: k.retry}
		}
	}
	if !errors.Is(err, context.Canceled) {
		g.Log.Error("amp: a message failed", "error", err)
	}
	return &message.Fault{Code: message.InsufficientResources, Reason: message.ReasonInternal, Text: "the host could not do this", RetryAfter: retryAfter}
}
