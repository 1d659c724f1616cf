package main

import (
	"bytes"
	"context"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
)

// port answers ops with a function and nothing around it. The benchmark's guests
// submit nothing.
type port func(ctx context.Context) []byte

var _ sandbox.Ops = port(nil)

// answers gives the same answer to every op at once, as the plain peer does.
func answers(body []byte) port { return func(context.Context) []byte { return bytes.Clone(body) } }

// held answers when it is released, or the turn is called off.
func held(release <-chan struct{}, arrived func()) port {
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
func (p port) Call(ctx context.Context, _ abi.Op, _ []byte) ([]byte, *abi.Error) { return p(ctx), nil }

// Submit refuses.
func (port) Submit(_ context.Context, op abi.Op, _ []byte) (sandbox.Answer, *abi.Error) {
	return nil, abi.Errorf(abi.CodeUnsupported, op, "op", "the benchmark submits nothing")
}

// Wait has nothing to wait for.
func (port) Wait(context.Context, []sandbox.Answer, time.Duration) (int, *abi.Error) {
	return 0, abi.Errorf(abi.CodeUnsupported, abi.OpLastError, "op", "the benchmark submits nothing")
}

func cannedAnswer() []byte { return []byte(`{"id":"1","text":"SUCCESS: message sent"}`) }
