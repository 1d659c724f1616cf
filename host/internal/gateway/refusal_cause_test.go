package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// A refused message has a cause in a word, and the key of the limit where one is the reason.
func TestRefusalCauses(t *testing.T) {
	t.Parallel()
	wrapped := func(kind error) error { return fmt.Errorf("a text: %w", kind) }
	for name, c := range map[string]struct {
		err        error
		cause, key string
	}{
		"unknown":    {wrapped(gateway.ErrUnknown), "not_found", ""},
		"denied":     {wrapped(gateway.ErrDenied), "role", ""},
		"conflict":   {wrapped(gateway.ErrConflict), "conflict", ""},
		"lost":       {wrapped(gateway.ErrStreamLost), "conflict", ""},
		"busy":       {wrapped(gateway.ErrBusy), "limit", ""},
		"stopping":   {wrapped(gateway.ErrDraining), "stopping", ""},
		"rate":       {wrapped(&gateway.RateError{}), "rate", ""},
		"quota":      {fmt.Errorf("%w: %w", gateway.ErrBusy, swarm.ErrQuota), "quota", ""},
		"erasing":    {fmt.Errorf("%w: %w", gateway.ErrBusy, swarm.ErrErasing), "erasing", ""},
		"store":      {fmt.Errorf("%w: %w", gateway.ErrBusy, swarm.ErrUnavailable), "store", ""},
		"own limit":  {fmt.Errorf("%w: %w", gateway.ErrBusy, &swarm.Refusal{Kind: swarm.ErrLimit, Key: "[limits] queue"}), "limit", "[limits] queue"},
		"own cause":  {fmt.Errorf("%w: %w", gateway.ErrInvalid, &swarm.Refusal{Kind: swarm.ErrInvalid, Cause: "agent"}), "agent", ""},
		"bare limit": {&swarm.Refusal{Kind: swarm.ErrLimit, Key: "[limits] queue"}, "limit", "[limits] queue"},
		"both":       {fmt.Errorf("%w: %w", &swarm.Refusal{Kind: swarm.ErrInvalid}, ownFault("too_large")), "too_large", ""},
		"late":       {fmt.Errorf("a text: %w", context.DeadlineExceeded), "unavailable", ""},
		"own word":   {fmt.Errorf("a text: %w", ownFault("too_large")), "too_large", ""},
		"own fault":  {ownFault(""), "invalid", ""},
		"malformed":  {wrapped(gateway.ErrInvalid), "invalid", ""},
		"another":    {errors.New("a text"), "invalid", ""},
		"no refusal": {nil, "", ""},
	} {
		if e := (gateway.Event{}).WithOutcome(false, c.err); e.Cause != c.cause || e.Key != c.key || (e.Verdict == "refused") != (c.err != nil) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if e := (gateway.Event{Out: true}).WithOutcome(false, errors.New("a text")); e.Cause != "" {
		t.Errorf("a message that left is %+v", e)
	}
}

// ownFault is a gateway's own fault with a word.
type ownFault string

func (f ownFault) Error() string { return "a text" }
func (f ownFault) Cause() string { return string(f) }
