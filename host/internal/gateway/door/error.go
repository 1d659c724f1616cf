package door

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// kinds are what the runtime's refusals are to gateways.
var kinds = []struct{ from, to error }{
	{swarm.ErrInvalid, gateway.ErrInvalid},
	{swarm.ErrNotFound, gateway.ErrUnknown},
	{swarm.ErrConflict, gateway.ErrConflict},
	{swarm.ErrForbidden, gateway.ErrDenied},
	{swarm.ErrLimit, gateway.ErrBusy},
	{swarm.ErrQuota, gateway.ErrBusy},
	{swarm.ErrErasing, gateway.ErrBusy},
	{swarm.ErrDraining, gateway.ErrDraining},
	{swarm.ErrElsewhere, gateway.ErrElsewhere},
}

// refusal is an error of a gateway's kind with a text that callers may see.
type refusal struct {
	kind error
	text string
	err  error
}

func (e *refusal) Error() string   { return e.text }
func (e *refusal) Unwrap() []error { return []error{e.kind, e.err} }

// foreignError is an error of the runtime as gateways have it. A task elsewhere is noted
// in the request, which another host may answer.
func foreignError(ctx context.Context, err error) error {
	swarm.ForwardingOf(ctx).Note(err)
	for _, k := range kinds {
		if err != nil && errors.Is(err, k.from) {
			return &refusal{k.to, err.Error(), err}
		}
	}
	return err
}

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...), kind}
}

func invalid(format string, args ...any) error { return refuse(gateway.ErrInvalid, format, args...) }
func denied(format string, args ...any) error  { return refuse(gateway.ErrDenied, format, args...) }
func unknown(format string, args ...any) error { return refuse(gateway.ErrUnknown, format, args...) }

// unknownAgent is the same for agents that are unknown, not exposed, or a stranger's.
func unknownAgent(name string) error { return unknown("there is no agent %q", name) }

func isUnknown(err error) bool { return errors.Is(err, gateway.ErrUnknown) }
