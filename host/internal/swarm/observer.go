package swarm

import (
	"time"

	"skep/spec/mail"
)

// Observer sees what has changed once it is durable. Its methods return at once, and are
// called in the order of a task's commits; commits of several tasks come at once.
type Observer interface {
	// Committed is called after each commit of a task.
	Committed(Change)
}

// Change is what one commit has changed in a task, without any content.
type Change struct {
	Task TaskKey
	// From is the task's state before, empty for a new one, and To the state after.
	From, To State
	// Created is when the task was created, At when it was changed.
	Created, At time.Time
	// Queued are the types of the messages that wait for agents by this change.
	Queued []mail.Type
	// Turn is the turn that has ended or waits for people; nil for other commits.
	Turn *CommittedTurn
}

// CommittedTurn is how a turn has ended.
type CommittedTurn struct {
	N     int64
	Agent string
	// Waits means that the turn waits for people, and goes on afterwards.
	Waits bool
	// Failure is nil for a turn that returned.
	Failure *Failure
	// Queued is the time from its claim to its start, Wall from its start to its commit.
	Queued, Wall time.Duration
	Usage        Usage
}

// noObserver is the [Observer] of a runtime that was given none.
type noObserver struct{}

func (noObserver) Committed(Change) {}

// newCommittedTurn describes a turn that is committed.
func newCommittedTurn(turn *Turn, out Outcome, now time.Time) *CommittedTurn {
	return &CommittedTurn{
		N: turn.row.N, Agent: turn.agent.Name, Waits: out.Suspended != nil, Failure: out.Failure,
		Queued: turn.queued, Wall: max(0, now.Sub(turn.start)), Usage: out.Usage,
	}
}

// change describes a mutation that was applied. from is the task's state before.
func (mut *mutationBuilder) change(from State) Change {
	c := Change{Task: mut.active.key, From: from, To: mut.Task.State, Created: mut.Task.Created, At: mut.now, Turn: mut.turn}
	for i := range mut.Insert { // by index: a row is large
		c.Queued = append(c.Queued, mut.Insert[i].Message.Type)
	}
	return c
}
