package turn

import (
	"context"
	"errors"
	"fmt"

	"skep/abi"
)

// ExitKind is how a turn ended that did not end well.
type ExitKind string

// The kinds of exit.
const (
	ExitFailed    ExitKind = "failed"    // the agent returned an error, or bad output
	ExitTrap      ExitKind = "trap"      // the module broke a rule of WebAssembly
	ExitAbort     ExitKind = "abort"     // the agent called abort
	ExitProc      ExitKind = "exit"      // the module called proc_exit
	ExitFuel      ExitKind = "fuel"      // instructions used up
	ExitCPU       ExitKind = "cpu"       // computing time used up
	ExitDeadline  ExitKind = "deadline"  // wall time used up
	ExitCancelled ExitKind = "cancelled" // the context was cancelled, or the grace of a cancelled turn is over
	ExitStack     ExitKind = "stack"     // too deep
	ExitMemory    ExitKind = "memory"    // declares or takes more memory than it may have
	ExitOutput    ExitKind = "output"    // wrote more than it may
	ExitProcess   ExitKind = "process"   // a process died
	ExitHost      ExitKind = "host"      // a fault of the host, not of the agent
)

// Repeats reports whether another run with the same input and limits ends the same
// way. Time, cancellation and faults outside the agent belong to one run.
func (k ExitKind) Repeats() bool {
	switch k {
	case ExitCPU, ExitDeadline, ExitCancelled, ExitProcess, ExitHost:
		return false
	}
	return true
}

// MaxMessage is the most bytes of a message from an agent that an [Exit] keeps.
const MaxMessage = 4 << 10

// Exit is why a turn did not end well. Its text names the limit and the TOML
// key that raises it, where there is one.
type Exit struct {
	Kind ExitKind
	// Limit is the key of the limit that was hit, for instance "limits.fuel".
	Limit   string
	Message string
	// Cause is why the turn's context ended, for a deadline or cancellation.
	Cause error
}

// Error renders the exit for operators and agents.
func (e *Exit) Error() string {
	if e.Limit == "" {
		return string(e.Kind) + ": " + e.Message
	}
	return fmt.Sprintf("%s: %s; %s allows more", e.Kind, e.Message, e.Limit)
}

// Unwrap returns the cause.
func (e *Exit) Unwrap() error { return e.Cause }

// Clone returns a copy for another turn.
func (e *Exit) Clone() *Exit {
	same := *e
	return &same
}

// ErrCancelled is the cause with which ops end when their turn is cancelled.
var ErrCancelled = errors.New("the turn is called off")

// ContextExit distinguishes a deadline from a cancellation. The context has ended,
// or its deadline has passed and it is about to end.
func ContextExit(ctx context.Context) *Exit {
	<-ctx.Done()
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Exit{Kind: ExitDeadline, Limit: KeyTurn, Message: "out of time: " + cause.Error(), Cause: cause}
	}
	return CancelledExit(cause)
}

// CancelledExit ends a turn whose context was cancelled for a cause.
func CancelledExit(cause error) *Exit {
	return &Exit{Kind: ExitCancelled, Message: cause.Error(), Cause: cause}
}

// GraceExit ends a turn that went on after it was cancelled.
func GraceExit(l Limits) *Exit {
	return &Exit{Kind: ExitCancelled, Limit: KeyGrace, Message: fmt.Sprintf(
		"%v, and did not end within %v", ErrCancelled, l.Grace), Cause: ErrCancelled}
}

// HostExit ends a turn that the host cannot serve.
func HostExit(err error) *Exit { return &Exit{Kind: ExitHost, Message: err.Error(), Cause: err} }

// FailedExit ends a call that returned a status other than ok.
func FailedExit(name string, status abi.Status, output []byte) *Exit {
	if status == abi.StatusNotImplemented {
		return &Exit{Kind: ExitFailed, Message: name + " is not implemented by this module"}
	}
	return &Exit{Kind: ExitFailed, Message: failureText(output)}
}

// OutputExit ends a turn that wrote more than it may.
func OutputExit(l Limits) *Exit {
	return &Exit{Kind: ExitOutput, Limit: KeyOutput, Message: fmt.Sprintf("wrote more than %d bytes of output", l.Output)}
}

// AbortExit ends a turn that called abort.
func AbortExit(code abi.Code, message string) *Exit {
	return &Exit{Kind: ExitAbort, Message: code.String() + ": " + Clip(message, MaxMessage)}
}

// MemoryExit ends a turn that needs more memory than it may have.
func MemoryExit(text string) *Exit {
	return &Exit{Kind: ExitMemory, Limit: KeyMemory, Message: text}
}
