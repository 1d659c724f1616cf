package swarm

import (
	"slices"
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
	// Queued are the messages that wait for agents by this change.
	Queued []MailShape
	// Outbox are the messages for other swarms that have come to or left the outbox.
	Outbox []OutboxChange
	// Asked are the calls that wait for people by this change, Answered those that do so no more.
	Asked, Answered []QuestionShape
	// Turn is the turn that has ended or waits for people; nil for other commits.
	Turn *CommittedTurn
	// Trace is the task's trace, nil for none.
	Trace *TaskTrace
	// Usage is what the task has used by now.
	Usage Usage
}

// MailShape is a message without its subject and body.
type MailShape struct {
	Type mail.Type
	Tier int
	// From is the sender's name, in FromSwarm if that is another swarm; To the recipient's.
	From, FromSwarm, To string
	// Size is the number of bytes of the body.
	Size int
}

// OutboxChange is what has become of a message for another swarm: it waits, is delivered, or
// is given up.
type OutboxChange struct {
	N     int64
	Peer  string
	State string
	Mail  MailShape
}

// States of an [OutboxChange].
const (
	OutboxQueued    = "queued"
	OutboxDelivered = "delivered"
	OutboxDead      = "dead"
)

// QuestionShape is a call that waits for a person, without its arguments.
type QuestionShape struct{ Call, Agent, Action string }

// CommittedTurn is how a turn has ended.
type CommittedTurn struct {
	N     int64
	Agent string
	// Tier is the tier of the message that the turn has handled.
	Tier int
	// Suspended means that the turn waits for people, and goes on afterwards.
	Suspended bool
	// Failure is nil for a turn that returned.
	Failure *Failure
	// Queued is the time from its claim to its start, Wall from its start to its commit.
	Queued, Wall time.Duration
	// Waited is how long the message stood in the queue, 0 where that is not known: it was
	// read from the store.
	Waited time.Duration
	Usage  Usage
	// Memory is the size of the agent's memory at its highest, 0 where none is measured.
	Memory int64
	// Parent is the trace context of the turn's message, Trace the turn's own, and Start when it
	// began; Calls are what was called in a turn that is traced.
	Parent, Trace Trace
	Start         time.Time
	Calls         []CallShape
	// Exceeded are the keys of the budgets in which calls of models did not fit.
	Exceeded []string
	// ModelFailures are the calls of models that have failed.
	ModelFailures []ModelFailure
}

// noObserver is the [Observer] of a runtime that was given none.
type noObserver struct{}

func (noObserver) Committed(Change) {}

// newCommittedTurn describes a turn that is committed.
func newCommittedTurn(turn *Turn, out Outcome, now time.Time) *CommittedTurn {
	usage := out.Usage
	usage.Spend = turn.run.spent
	if len(out.Calls) > 0 {
		turn.rt.traces.setCalls(turn.rec, turn.row.N, out.Calls)
	}
	return &CommittedTurn{
		N: turn.row.N, Agent: turn.agent.Name, Tier: turn.row.Tier, Waited: turn.waited, Memory: out.Memory, Suspended: out.Suspended != nil, Failure: out.Failure,
		Queued: turn.queued, Wall: max(0, now.Sub(turn.start)), Usage: usage, Exceeded: turn.run.exceeded, ModelFailures: slices.Clone(turn.run.modelFailures),
		Parent: turn.row.Trace, Trace: turn.trace, Start: turn.start, Calls: out.Calls,
	}
}

// change describes a mutation that is about to be applied to the task. The caller holds t.mu.
func (mut *mutationBuilder) change(t *activeTask) Change {
	c := Change{
		Task: t.key, From: t.rec.State, To: mut.Task.State, Created: mut.Task.Created, At: mut.now,
		Turn: mut.turn, Trace: mut.Task.Trace, Usage: mut.Task.Usage, Outbox: mut.outboxChanges(t),
	}
	for i := range mut.Insert { // by index: a row is large
		row := &mut.Insert[i]
		shape := shapeOf(&row.Message, mut.def.Name)
		shape.Tier, shape.To = row.Tier, row.Agent
		c.Queued = append(c.Queued, shape)
	}
	if c.From == StatePaused || c.To == StatePaused {
		before, after := t.rec.questionShapes(), mut.Task.questionShapes()
		c.Asked, c.Answered = withoutQuestions(after, before), withoutQuestions(before, after)
	}
	return c
}

// shapeOf describes a message, whose recipient is left open where it has several.
func shapeOf(m *mail.Message, local string) MailShape {
	shape := MailShape{Type: m.Type, Tier: mail.Tier(*m), From: m.Payload.Sender.Name, Size: len(m.Payload.Body)}
	if from := m.Payload.SenderSwarm; from != local {
		shape.FromSwarm = from
	}
	if to := m.Payload.Recipients; len(to) == 1 {
		shape.To = to[0].Name
	}
	return shape
}

func (mut *mutationBuilder) outboxChanges(t *activeTask) (list []OutboxChange) {
	add := func(msg *OutboxMessage, state string) {
		list = append(list, OutboxChange{N: msg.N, Peer: msg.Peer, State: state, Mail: shapeOf(&msg.Message, mut.def.Name)})
	}
	for i := range mut.Mutation.Outbox {
		state := OutboxQueued
		if mut.Mutation.Outbox[i].Dead != nil {
			state = OutboxDead
		}
		add(&mut.Mutation.Outbox[i], state)
	}
	for i := range t.outbox {
		if slices.Contains(mut.Delivered, t.outbox[i].N) {
			add(&t.outbox[i], OutboxDelivered)
		}
	}
	return list
}

// questionShapes lists what waits for people; nothing does unless the task is paused.
func (t Task) questionShapes() (list []QuestionShape) {
	if t.State != StatePaused {
		return nil
	}
	for _, q := range t.questions() {
		list = append(list, QuestionShape{q.Call, q.Agent, q.Action})
	}
	return list
}

func withoutQuestions(list, others []QuestionShape) (rest []QuestionShape) {
	for _, q := range list {
		if !slices.Contains(others, q) {
			rest = append(rest, q)
		}
	}
	return rest
}
