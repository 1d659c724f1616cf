package rest

import (
	"context"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Runtime is the MAIL runtime as the routes use it: one part for each group of
// routes. Methods are safe for concurrent use. Only Wait and [swarm.Feed.Next]
// wait for turns. Refusals are *swarm.Refusal; callers see their text.
type Runtime interface {
	Swarms
	Posts
	Tasks
	Streams
	Interswarm
	DeadLetters
	Questions
	Quarantine
	Usage
}

var _ Runtime = (*swarm.Runtime)(nil)

// Swarms serves the routes about the swarm and the host.
type Swarms interface {
	// Definition returns a swarm, which must not be changed.
	Definition(tenant, swarm string) (*swarm.Definition, bool)
	Started() time.Time
	Status(ctx context.Context, key swarm.InstanceKey) (swarm.Status, error)
}

// Posts serves the routes that take messages from users.
type Posts interface {
	// Submit returns when the post is durable.
	Submit(ctx context.Context, p swarm.Post) (*swarm.Receipt, error)
	// Wait returns the post's answer, or swarm.ErrDraining.
	Wait(ctx context.Context, r *swarm.Receipt) (swarm.Answer, error)
}

// Tasks serves the routes that show and cancel tasks.
type Tasks interface {
	Task(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error)
	Tasks(ctx context.Context, key swarm.InstanceKey, before time.Time, limit int) ([]swarm.Task, error)
	// ListTasks lists the tasks that a filter selects, in pages; see [swarm.TaskLog].
	ListTasks(ctx context.Context, filter swarm.TaskFilter, after string, limit int) (tasks []swarm.Task, next string, err error)
	History(ctx context.Context, key swarm.TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error)
	Turns(ctx context.Context, key swarm.TaskKey, after int64, limit int) (page []swarm.TurnSummary, more bool, err error)
	CancelTask(ctx context.Context, key swarm.TaskKey, by string) error
	// RecordLook logs in a task that somebody else reads it; it is durable on return.
	RecordLook(ctx context.Context, key swarm.TaskKey, by, reason string, until time.Time) (created time.Time, err error)
}

// Streams serves the routes that show a task's log of events.
type Streams interface {
	Events(ctx context.Context, key swarm.TaskKey, after int64, limit int) ([]swarm.Event, error)
	// Follow returns a feed that the caller closes.
	Follow(ctx context.Context, key swarm.TaskKey, after int64) (*swarm.Feed, error)
	// AnswerCursor returns the cursor of the event that answers the post, 0
	// before there is one.
	AnswerCursor(ctx context.Context, r *swarm.Receipt) (int64, error)
}

// Interswarm serves the routes for other swarms.
type Interswarm interface {
	// Receive returns when the message of another swarm is durable.
	Receive(ctx context.Context, in swarm.Incoming) (swarm.IncomingReceipt, error)
	// RecordRefusedWrapper writes to an open task's log that a message for it
	// was refused.
	RecordRefusedWrapper(ctx context.Context, in swarm.Incoming, reason string) error
}

// DeadLetters serves the routes for messages whose delivery was given up.
type DeadLetters interface {
	// DeadLetters lists a tenant's dead letters, newest first, before a place in
	// the list.
	DeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]swarm.DeadLetter, error)
	// ResendDeadLetter puts one back into its outbox; it is durable on return.
	ResendDeadLetter(ctx context.Context, tenant, id string) (swarm.DeadLetter, error)
}

// Questions serves the routes for calls that wait for people.
type Questions interface {
	// Questions lists those of a page of paused tasks: of an instance, of a tenant if
	// within has no Instance, or of all if it has no Tenant. next is empty on the last page.
	Questions(ctx context.Context, within swarm.InstanceKey, after string, limit int) (list []swarm.Question, next string, err error)
	// AnswerQuestion gives the answer to one; it is durable on return.
	AnswerQuestion(ctx context.Context, key swarm.TaskKey, call, text string) error
}

// Usage serves the route that shows what turns have used.
type Usage interface {
	// Usage sums what turns have used; see [swarm.Tenants].
	Usage(ctx context.Context, q swarm.UsageQuery) ([]swarm.UsageGroup, error)
	// QuotaUse returns how much a tenant stores, and uses of each of its quotas.
	QuotaUse(ctx context.Context, tenant string) (swarm.TenantQuotaUse, error)
	// TenantUses lists tenants of the file and those that keep anything, with a name greater
	// than after, by name: at most limit. more reports whether others follow.
	TenantUses(ctx context.Context, after string, limit int) (list []swarm.TenantQuotaUse, more bool, err error)
	// KnowsTenant reports whether a tenant is one that TenantUses lists.
	KnowsTenant(ctx context.Context, tenant string) (bool, error)
}

// Quarantine serves the route that releases agents.
type Quarantine interface {
	// ReleaseAgent takes an agent out of quarantine; it is durable on return.
	ReleaseAgent(tenant, swarm, agent string) error
}
