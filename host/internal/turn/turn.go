package turn

import (
	"context"
	"time"
)

// Turn is what one turn runs on.
type Turn struct {
	// Tenant owns the task of the turn: a process serves one tenant.
	Tenant string
	// Input is what the agent reads with input_read. It must not change
	// before the executor returns.
	Input []byte
	// Seed seeds the agent's randomness: same seed, same bytes.
	Seed   [32]byte
	Clock  Clock
	Ops    Ops
	CPU    CPU
	Limits Limits
	// Cancelled cancels the turn when it is closed: sleeps and waiting ops
	// return, later ops answer CANCELLED, and the agent has Limits.Grace to
	// return. Nil never cancels. The end of the context kills the turn at once.
	Cancelled <-chan struct{}
}

// Clock is the turn's clock, which realtime and monotonic both read. It stands
// still while the agent computes.
type Clock interface {
	Now() time.Time
	// Advance moves the clock to the recorded time of an op's result. Ops
	// call it; executors do not.
	Advance(to time.Time)
	// Sleep waits for d and moves the clock by exactly d. When ctx ends first
	// it returns the cause; the clock moves by the whole span all the same.
	// It is called without a CPU token.
	Sleep(ctx context.Context, d time.Duration) error
}

// CPU is a turn's claim on the processor. Calls alternate, beginning with
// Acquire.
type CPU interface {
	// Acquire waits for a token, or until ctx ends.
	Acquire(ctx context.Context) error
	Release()
}
