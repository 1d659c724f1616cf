package sandbox

import (
	"context"
	"time"

	"skep/abi"
)

// Turn is what one turn runs on.
type Turn struct {
	// Tenant is whose turn it is: a subprocess serves one tenant.
	Tenant string
	// Input is what the guest reads with input_read. It must not change
	// before Turn returns.
	Input []byte
	// Seed seeds the guest's randomness: same seed, same bytes.
	Seed   [32]byte
	Clock  Clock
	Ops    Ops
	CPU    CPU
	Limits Limits
	// Cancelled calls the turn off when it is closed: sleeps and waiting ops
	// return, later ops answer CANCELLED, and the guest has Limits.Grace to
	// end well. Nil: never. The end of the context is something else: it kills.
	Cancelled <-chan struct{}
	// Look, where it is set, sees the instance's memory and mutable globals when
	// skep_turn is about to begin and when it has ended, however it did. It must
	// neither change nor keep the memory.
	Look func(memory []byte, globals []uint64)
}

// Clock is the turn's clock, which realtime and monotonic both read. It stands
// still while the guest computes.
type Clock interface {
	Now() time.Time
	// Advance moves the clock to the recorded time of an op's result. Ops
	// call it; the sandbox does not.
	Advance(to time.Time)
	// Sleep waits for d and moves the clock by exactly d. When ctx ends first
	// it returns the cause; the clock moves by the whole span all the same.
	// It is called without a CPU token.
	Sleep(ctx context.Context, d time.Duration) error
}

// Ops answers the guest's calls. All methods, and those of its answers, are
// called by one goroutine at a time and without a CPU token. Once ctx has ended,
// because the turn is called off or over, every op but log answers CANCELLED at
// once. What they return is all that a guest learns, so it is what a journal
// keeps: the outcome of a Wait and the length of a Read too.
type Ops interface {
	// Call runs an op and waits for its answer. It may keep req; the body is
	// the sandbox's afterwards.
	Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error)
	// Submit starts an op and does not wait for it. The op runs until ctx ends
	// or its answer is closed. An error says that nothing was started.
	Submit(ctx context.Context, op abi.Op, req []byte) (Answer, *abi.Error)
	// Wait returns the lowest index of an answer that has something to read,
	// has ended or failed. After the timeout the error is DEADLINE, and the
	// turn's clock is not behind the host's; a negative timeout waits as long
	// as it takes. There is one answer at least.
	Wait(ctx context.Context, answers []Answer, timeout time.Duration) (int, *abi.Error)
}

// Answer is what comes of an op that was submitted: a body, or a stream.
type Answer interface {
	// Read copies the next bytes to p, which is not empty, and waits until there
	// are any; 0 is the end. An error is the op's own, or CANCELLED when ctx
	// ends first. It must not keep p.
	Read(ctx context.Context, p []byte) (int, *abi.Error)
	// Close cancels the op if it still runs, and waits until nothing of it is
	// left. It is called once.
	Close()
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
	// Fuel, CPU and HostCalls count from skep_turn on; an op that was refused
	// for a budget, its pointers or its size is no host call.
	Fuel      uint64
	CPU       time.Duration
	HostCalls int64
	// StartFuel and StartCPU are what the module's start took, where this turn
	// made an image or an instance of its own; else nothing.
	StartFuel uint64
	StartCPU  time.Duration
	// Memory is the size of the linear memory at the end, its highest.
	Memory int64
	// Status is what skep_turn returned, if it did.
	Status abi.Status
	// Exit is nil when the turn ended well.
	Exit *Exit
}
