package rest

import (
	"context"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Runtime is what the routes need of the swarm. Its methods are safe for
// concurrent use; only Wait and a Feed's Next wait for turns. Refusals are
// *swarm.Refusal, whose text callers are shown.
type Runtime interface {
	// Definition returns a swarm, which must not be changed.
	Definition(tenant, swarm string) (*swarm.Definition, bool)
	Started() time.Time
	Status(ctx context.Context, key swarm.InstanceKey) (swarm.Status, error)

	// Submit returns when the post is durable.
	Submit(ctx context.Context, p swarm.Post) (*swarm.Receipt, error)
	// Wait returns the post's answer, or swarm.ErrDraining.
	Wait(ctx context.Context, r *swarm.Receipt) (swarm.Answer, error)
	// Answered returns the cursor of the event that answers the post, 0
	// before there is one.
	Answered(ctx context.Context, r *swarm.Receipt) (int64, error)
	Cancel(ctx context.Context, key swarm.TaskKey, by string) error
	// ReleaseAgent takes an agent out of quarantine; it is durable on return.
	ReleaseAgent(tenant, swarm, agent string) error

	// Receive returns when what another swarm has handed in is durable.
	Receive(ctx context.Context, in swarm.Incoming) (swarm.Received, error)
	// TurnedAway notes in an open task's log that one was refused.
	TurnedAway(ctx context.Context, in swarm.Incoming, reason string) error
	// DeadLetters lists a tenant's, newest first, before a place in the list;
	// Resend puts one back into its outbox, and is durable on return.
	DeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]swarm.DeadLetter, error)
	Resend(ctx context.Context, tenant, id string) (swarm.DeadLetter, error)

	// Follow returns a feed that the caller closes.
	Follow(ctx context.Context, key swarm.TaskKey, after int64) (*swarm.Feed, error)
	Task(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error)
	Tasks(ctx context.Context, key swarm.InstanceKey, before time.Time, limit int) ([]swarm.Task, error)
	Events(ctx context.Context, key swarm.TaskKey, after int64, limit int) ([]swarm.Event, error)
	History(ctx context.Context, key swarm.TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error)
	Turns(ctx context.Context, key swarm.TaskKey, after int64, limit int) (page []swarm.TurnSummary, more bool, err error)
}

var _ Runtime = (*swarm.Runtime)(nil)
