package a2a

import (
	"context"
	"errors"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
)

// protocolErrors are the errors of the runtime as the protocol has them
// (https://a2a-protocol.org/latest/specification/#332-error-handling).
var protocolErrors = []struct{ own, theirs error }{
	{gateway.ErrUnknown, a2a.ErrTaskNotFound},
	{gateway.ErrConflict, a2a.ErrInvalidParams},
	{gateway.ErrInvalid, a2a.ErrInvalidParams},
	{gateway.ErrDenied, a2a.ErrUnauthorized},
	{gateway.ErrStreamLost, a2a.ErrServerError},
}

// protocolError returns an error of the runtime in the protocol's words. A fault of the
// host is logged and shown without its text.
func (g *Gateway) protocolError(err error) error {
	for _, e := range protocolErrors {
		if errors.Is(err, e.own) {
			return a2a.NewError(e.theirs, err.Error())
		}
	}
	switch {
	case err == nil, errors.As(err, new(*a2a.Error)), errors.As(err, new(unavailable)):
		return err
	case errors.Is(err, gateway.ErrBusy), errors.Is(err, gateway.ErrDraining), errors.Is(err, gateway.ErrElsewhere):
		return unavailable{err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	g.Log.Error("a2a: a request failed", "error", err)
	return a2a.NewError(a2a.ErrInternalError, "the host could not do this")
}

// unavailable is an error after which a later attempt may succeed. The protocol has no
// word for it; gRPC has.
type unavailable struct{ err error }

func (u unavailable) Error() string   { return u.err.Error() }
func (u unavailable) Unwrap() []error { return []error{a2a.ErrServerError, u.err} }

// GRPCStatus is what package status looks for.
func (u unavailable) GRPCStatus() *status.Status {
	if errors.Is(u.err, gateway.ErrBusy) {
		return status.New(codes.ResourceExhausted, u.Error())
	}
	return status.New(codes.Unavailable, u.Error())
}

func invalid(text string) error { return a2a.NewError(a2a.ErrInvalidParams, text) }

func unsupported(text string) error { return a2a.NewError(a2a.ErrUnsupportedOperation, text) }
