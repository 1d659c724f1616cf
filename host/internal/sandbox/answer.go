package sandbox

import (
	"context"
	"time"

	"skep/abi"
)

// Done is the answer of an op that has ended: its body, or its error. Nothing of
// it blocks.
func Done(body []byte, err *abi.Error) Answer { return &done{body, err} }

type done struct {
	rest []byte
	err  *abi.Error
}

func (d *done) Read(_ context.Context, p []byte) (int, *abi.Error) {
	if d.err != nil {
		return 0, d.err
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *done) Close() {}

// Instant makes a func that runs one op the whole port: what is submitted is
// done at once, and every answer is ready.
type Instant func(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error)

var _ Ops = Instant(nil)

// Call runs the op, unless the turn is called off.
func (f Instant) Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
	if ctx.Err() != nil && op != abi.OpLog {
		return nil, CalledOff(ctx, op.String())
	}
	return f(ctx, op, req)
}

// Submit runs the op; its error comes with the answer.
func (f Instant) Submit(ctx context.Context, op abi.Op, req []byte) (Answer, *abi.Error) {
	return Done(f.Call(ctx, op, req)), nil
}

// Wait returns the first answer.
func (f Instant) Wait(ctx context.Context, _ []Answer, _ time.Duration) (int, *abi.Error) {
	return 0, CalledOff(ctx, abi.ImportWait)
}

// CalledOff is the error that an op, by its name, or an import answers once its
// context has ended; nil before.
func CalledOff(ctx context.Context, name string) *abi.Error {
	if ctx.Err() == nil {
		return nil
	}
	return fault(abi.CodeCancelled, name, "cancelled", "the turn is called off")
}
