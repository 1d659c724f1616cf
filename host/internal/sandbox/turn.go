package sandbox

import (
	"context"
	"time"

	"skep/abi"
)

// Turn is what one turn runs on.
type Turn struct {
	// Input is what the guest reads with input_read. It must not change
	// before Turn returns.
	Input []byte
	// Seed seeds the guest's randomness: same seed, same bytes.
	Seed   [32]byte
	Clock  Clock
	Ops    Ops
	CPU    CPU
	Limits Limits
}

// Clock is the turn's clock, which realtime and monotonic both read. It stands
// still while the guest computes.
type Clock interface {
	Now() time.Time
	// Advance moves the clock to the recorded time of an op's result. Ops
	// call it; the sandbox does not.
	Advance(to time.Time)
	// Sleep waits for d and moves the clock by exactly d, or returns early
	// with the cause when ctx ends. It is called without a CPU token.
	Sleep(ctx context.Context, d time.Duration) error
}

// Ops answers the guest's calls.
type Ops interface {
	// Call runs one op. It may block until ctx ends and is called without a
	// CPU token, by one goroutine at a time. It may keep req; the result is
	// the sandbox's afterwards.
	Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error)
}

// CPU is a turn's claim on the processor. Calls alternate, beginning with
// Acquire.
type CPU interface {
	// Acquire waits for a token, or until ctx ends.
	Acquire(ctx context.Context) error
	Release()
}

// Result is how a turn ended and what it used.
type Result struct {
	// Output is what the guest wrote; with a nil Exit it is a valid
	// [abi.TurnResult] or empty.
	Output []byte
	// Fuel, CPU and HostCalls count from skep_turn on.
	Fuel      uint64
	CPU       time.Duration
	HostCalls int64
	// Memory is the size of the linear memory at the end, its highest.
	Memory int64
	// Exit is nil when the turn ended well.
	Exit *Exit
}
