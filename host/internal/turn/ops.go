package turn

import (
	"context"
	"time"

	"skep/abi"
)

// Fixed bounds of the ops of one turn.
const (
	MaxRequest = 4 << 20 // bytes of one op's request
	MaxHandles = 64      // open handles of a turn
	MaxWait    = 64      // handles in one wait
)

// Ops runs the operations that an agent calls. One goroutine at a time calls its
// methods and the methods of its answers, without a CPU token. Once ctx has ended,
// because the turn is cancelled or over, every op but log answers CANCELLED at
// once. An agent learns nothing but what these methods return, so a journal keeps
// all of it: the index from a Wait and the length of a Read too.
type Ops interface {
	// Call runs an op and waits for its answer. It may keep req; the body
	// belongs to the caller.
	Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error)
	// Submit starts an op and does not wait for it. The op runs until ctx ends
	// or its answer is closed. After an error nothing was started.
	Submit(ctx context.Context, op abi.Op, req []byte) (Answer, *abi.Error)
	// Wait returns the lowest index of an answer that has something to read,
	// has ended or failed. After the timeout the error is DEADLINE, and the
	// turn's clock is not behind the host's; a negative timeout never ends.
	// There is at least one answer.
	Wait(ctx context.Context, answers []Answer, timeout time.Duration) (int, *abi.Error)
}

// Answer is the answer of an op that was submitted: a body, or a stream.
type Answer interface {
	// Read copies the next bytes to p, which is not empty, and waits until there
	// are any; 0 is the end. An error is the op's own, or CANCELLED when ctx
	// ends first. It must not keep p.
	Read(ctx context.Context, p []byte) (int, *abi.Error)
	// Close cancels the op if it still runs, and waits until it has stopped. It
	// is called once.
	Close()
}

// Completed returns the answer of an op that has ended with a body or an error.
// Its methods never block.
func Completed(body []byte, err *abi.Error) Answer { return &completed{body, err} }

type completed struct {
	rest []byte
	err  *abi.Error
}

func (c *completed) Read(_ context.Context, p []byte) (int, *abi.Error) {
	if c.err != nil {
		return 0, c.err
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *completed) Close() {}

// OpsFunc is a function that runs one op, as [Ops]: a submitted op completes at
// once, and every answer is ready.
type OpsFunc func(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error)

var _ Ops = OpsFunc(nil)

// Call runs the op, unless the turn is cancelled.
func (f OpsFunc) Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
	if ctx.Err() != nil && op != abi.OpLog {
		return nil, CancelledError(ctx, op.String())
	}
	return f(ctx, op, req)
}

// Submit runs the op; its error comes with the answer.
func (f OpsFunc) Submit(ctx context.Context, op abi.Op, req []byte) (Answer, *abi.Error) {
	return Completed(f.Call(ctx, op, req)), nil
}

// Wait returns the first answer.
func (f OpsFunc) Wait(ctx context.Context, _ []Answer, _ time.Duration) (int, *abi.Error) {
	return 0, CancelledError(ctx, abi.ImportWait)
}
