package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// ExitKind is how a turn ended that did not end well.
type ExitKind string

// The kinds of exit.
const (
	ExitFailed    ExitKind = "failed"    // the guest returned an error, or bad output
	ExitTrap      ExitKind = "trap"      // the guest broke a rule of Wasm
	ExitAbort     ExitKind = "abort"     // the guest called abort
	ExitProc      ExitKind = "exit"      // the guest called proc_exit
	ExitFuel      ExitKind = "fuel"      // instructions used up
	ExitCPU       ExitKind = "cpu"       // computing time used up
	ExitDeadline  ExitKind = "deadline"  // wall time used up
	ExitCancelled ExitKind = "cancelled" // the context was cancelled, or the grace of a turn called off is over
	ExitStack     ExitKind = "stack"     // too deep
	ExitMemory    ExitKind = "memory"    // declares more memory than it may have
	ExitOutput    ExitKind = "output"    // wrote more than it may
	ExitProcess   ExitKind = "process"   // a subprocess died
	ExitHost      ExitKind = "host"      // a fault of the host, not of the guest
)

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

// errKilled is the panic that ends a guest. It never leaves the package.
var errKilled = errors.New("sandbox: killed")

// ContextExit tells a deadline from a cancellation. The context has ended, or
// its deadline has passed and it is about to.
func ContextExit(ctx context.Context) *Exit {
	<-ctx.Done()
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Exit{Kind: ExitDeadline, Limit: keyTurn, Message: "out of time: " + cause.Error(), Cause: cause}
	}
	return cancelled(cause)
}

func cancelled(cause error) *Exit {
	return &Exit{Kind: ExitCancelled, Message: cause.Error(), Cause: cause}
}
