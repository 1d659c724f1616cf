package main

import (
	"bytes"
	"context"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// cannedOps answers ops with a function and nothing around it. The benchmark's guests
// submit nothing.
type cannedOps func(ctx context.Context) []byte

var _ turn.Ops = cannedOps(nil)

// answers gives the same answer to every op at once, as the plain peer does.
func answers(body []byte) cannedOps { return func(context.Context) []byte { return bytes.Clone(body) } }

// held answers when it is released, or the turn is called off.
func held(release <-chan struct{}, arrived func()) cannedOps {
	return func(ctx context.Context) []byte {
		arrived()
		select {
		case <-release:
		case <-ctx.Done():
		}
		return []byte("{}")
	}
}

// Call answers an op.
func (p cannedOps) Call(ctx context.Context, _ abi.Op, _ []byte) ([]byte, *abi.Error) {
	return p(ctx), nil
}

// Submit refuses.
func (cannedOps) Submit(_ context.Context, op abi.Op, _ []byte) (turn.Answer, *abi.Error) {
	return nil, abi.Errorf(abi.CodeUnsupported, op, "op", "the benchmark submits nothing")
}

// Wait has nothing to wait for.
func (cannedOps) Wait(context.Context, []turn.Answer, time.Duration) (int, *abi.Error) {
	return 0, abi.Errorf(abi.CodeUnsupported, abi.OpLastError, "op", "the benchmark submits nothing")
}

func cannedAnswer() []byte { return []byte(`{"id":"1","text":"SUCCESS: message sent"}`) }
