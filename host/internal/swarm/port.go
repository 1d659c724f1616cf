package swarm

import (
	"context"
	"errors"

	"skep/abi"
)

// Executor runs turns. Execute is called from many goroutines at once, at most once at
// a time for one (task, agent). It returns soon after ctx ends; context.Cause(ctx) is
// the reason.
type Executor interface {
	Execute(ctx context.Context, t *Turn) Outcome
}

// Outcome is how a turn ended. A nil Failure means ok; only then do the turn's staged
// effects and Result count. Usage counts always.
type Outcome struct {
	Result abi.TurnResult
	Usage  Usage
	// Memory is the size of the agent's memory at its highest, 0 where none is measured.
	Memory  int64
	Failure *Failure
	// Record is the part of the turn's record that is not durable yet: the header, if
	// it was not journaled, entries, and the end without its time.
	Record *Record
	// Calls are the calls of models and actions of a turn that is traced.
	Calls []CallShape
	// Suspended are the calls that suspend the turn: only people can answer them. The
	// record of a suspended turn has no end.
	Suspended []BreakpointCall
	// Hibernation, if set, waits for the turn, which has no end and all of its record durable: it
	// goes on from there.
	Hibernation Hibernation
}

// Hibernation is a turn that waits for answers without a sandbox.
type Hibernation interface {
	// Await returns when the turn should go on: an answer has come, the turn is interrupted, or
	// ctx has ended.
	Await(ctx context.Context, interrupted <-chan struct{})
	// End ends the effects of a turn that cannot go on: for err, or because ctx has ended. spent
	// is what its models have cost.
	End(ctx context.Context, err error, spent Spend) Outcome
}

// Failure is why a turn failed, in words for operators and agents.
type Failure struct {
	// Cause is a short word: trap, fuel, cpu, deadline, stack, output …
	Cause string
	// Limit is the TOML key of the limit that was hit, empty for none.
	Limit   string
	Message string
}

// Forwarder delivers messages to agents of other swarms. Its methods return at once and
// are safe for concurrent use.
type Forwarder interface {
	// Check returns why no message can be sent to the swarm, or nil.
	Check(ctx context.Context, from InstanceKey, swarm string) error
	// Wake notifies the forwarder of an outbox with messages. It may be called without
	// need, and must not call the runtime before it returns.
	Wake(box OutboxKey)
}

// NoForwarder is the [Forwarder] of a host without peers.
type NoForwarder struct{}

// Check refuses every swarm.
func (NoForwarder) Check(_ context.Context, _ InstanceKey, swarm string) error {
	return errors.New("no peer \"" + swarm + "\": this host has no peers configured")
}

// Wake does nothing: there are no outbox messages.
func (NoForwarder) Wake(OutboxKey) {}
