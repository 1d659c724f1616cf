package swarm

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skep/abi"
	"skep/host/internal/swarm/scheduler"
)

// errTurnTime is the cause that stops a turn at its wall time.
var errTurnTime = errors.New("the turn took longer than its limit")

// claim is the demand of one (task, agent) for a turn. It may be stale by the time it
// has a slot: the task is looked at again.
type claim struct {
	task  *activeTask
	agent string
	// since is when it was made, by [Options.Monotonic].
	since time.Time
}

// runClaim makes a turn of a claim, if the task still needs one.
func (r *Runtime) runClaim(slot *scheduler.Slot[claim]) {
	t, agent := slot.Item.task, slot.Item.agent
	defer r.releaseTask(t)
	defer r.advanceSuspects(t, agent)
	setup, over := r.startTurn(t, agent)
	if over {
		r.enforceMessageLimit(r.lifetime, t)
		return
	}
	if setup == nil {
		return
	}
	setup.slot, setup.queued, setup.waited = slot, max(0, r.monotonic().Sub(slot.Item.since)), setup.run.row.waitedUntil(r.now())
	r.runTurn(t, setup)
	r.claimTurns(t)
}

// turnSetup is everything a turn begins with.
type turnSetup struct {
	run    *runningTurn
	def    *Definition
	agent  *Agent
	rec    Task
	state  json.RawMessage
	ctx    context.Context
	mark   *runMark
	slot   *scheduler.Slot[claim]
	buffer *TurnBuffer
	// queued is how long the turn waited for its slot.
	queued time.Duration
	// waited is how long its row stood in the queue, 0 where that is not known.
	waited time.Duration
}

// waitedUntil is how long the row has stood in the queue, 0 where that is not known.
func (row Row) waitedUntil(now time.Time) time.Duration {
	if row.QueuedAt.IsZero() {
		return 0
	}
	return max(1, now.Sub(row.QueuedAt))
}

// startTurn takes the next row of an agent, if it may run. over means that the task has
// used up its messages instead.
func (r *Runtime) startTurn(t *activeTask, name string) (setup *turnSetup, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.claimedTiers, name)
	q := t.queue[name]
	if t.rec.State != StateRunning || q == nil || q.Len() == 0 || t.running[name] != nil || !r.share.hasTask(t.key) {
		return nil, false
	}
	counted := countsTowardsLimit((*q)[0])
	if counted && t.limitReached() {
		return nil, !t.rec.Grace
	}
	if !r.admitRow(t, (*q)[0]) {
		return nil, false
	}
	def := r.effectiveDefinition(t.def)
	agent, ok := def.agent(name)
	if !ok {
		// The task's earlier definition had this agent.
		agent = &Agent{Name: name}
	}
	row := heap.Pop(q).(Row)
	ctx, cancel := context.WithCancelCause(context.Background())
	rn := &runningTurn{row: row, def: def, cancel: cancel, counted: counted, interrupted: make(chan struct{}), emitted: t.newEmitState(row)}
	t.running[name] = rn
	return &turnSetup{buffer: &TurnBuffer{all: r.buffers, tenant: t.key.Tenant}, run: rn, def: def, agent: agent, rec: t.rec.clone(), state: t.states[name], ctx: ctx}, false
}

// runTurn runs one turn to its commit. When the host stops before, the row stays in the
// store, and the next host runs the turn again.
func (r *Runtime) runTurn(t *activeTask, setup *turnSetup) {
	defer setup.run.cancel(nil)
	defer r.markRunning(t, setup)()
	prior, tail, err := r.readPast(t, setup)
	if err != nil {
		r.endUnreadTurn(t, setup, err)
		return
	}
	t.addPriorModelUse(setup.run, prior)
	if f := r.checkBarred(t, setup); f != nil {
		r.failTurn(t, setup, prior, *f)
		return
	}
	if f := r.checkResting(t, setup); f != nil && prior == nil {
		r.failTurn(t, setup, nil, *f)
		return
	}
	turn, err := r.prepareTurn(t, setup, prior, tail)
	if err != nil {
		r.failTurn(t, setup, prior, Failure{Cause: "host", Message: err.Error()})
		return
	}
	defer setup.buffer.close()
	ctx, done := context.WithTimeoutCause(setup.ctx, turn.agent.wallLimit(), errTurnTime)
	defer done()
	stop := context.AfterFunc(r.lifetime, func() { setup.run.cancel(errShutdown) })
	defer stop()
	out := r.execute(ctx, turn)
	for out.Hibernation != nil {
		turn = r.awaitTurn(ctx, t, setup, turn, out.Hibernation)
		turn, out = r.wakeTurn(ctx, t, setup, turn, out)
	}
	setup.slot.SetWaiting(false)
	if out.Failure != nil && errors.Is(context.Cause(ctx), errShutdown) {
		t.commit.Lock()
		defer t.commit.Unlock()
		r.discardTurn(t, setup.run, turn, out)
		return
	}
	if out.Suspended == nil {
		r.recordRest(t, setup, out.Failure)
	}
	r.commitTurn(t, setup.run, turn, out)
}

// endUnreadTurn ends a turn whose past could not be read. One that moves to another host is run
// there, and one of a host that stops is run after its start.
func (r *Runtime) endUnreadTurn(t *activeTask, setup *turnSetup, err error) {
	switch {
	case r.lifetime.Err() != nil:
	case errors.Is(context.Cause(setup.ctx), errMoved):
		t.commit.Lock()
		defer t.commit.Unlock()
		r.discardTurn(t, setup.run, r.newUnrunTurn(t, setup, nil), Outcome{})
	default:
		r.failTurn(t, setup, nil, Failure{Cause: "host", Message: err.Error()})
	}
}

// failTurn ends a turn without running it.
func (r *Runtime) failTurn(t *activeTask, setup *turnSetup, prior *PriorAttempt, f Failure) {
	r.commitTurn(t, setup.run, r.newUnrunTurn(t, setup, prior), Outcome{Failure: &f})
}

func (r *Runtime) newUnrunTurn(t *activeTask, setup *turnSetup, prior *PriorAttempt) *Turn {
	return &Turn{rt: r, task: t, def: setup.def, agent: setup.agent, run: setup.run, buffer: setup.buffer, row: setup.run.row, trace: r.traces.ofTurn(setup.rec, setup.run.row.N, setup.run.row.Trace), rec: setup.rec, queued: setup.queued, waited: setup.waited, prior: prior, start: r.now(), clock: newClock(r.now(), r.now)}
}

func (r *Runtime) execute(ctx context.Context, turn *Turn) Outcome {
	return r.guardTurn(turn, func() Outcome { return r.exec.Execute(ctx, turn) })
}

// guardTurn recovers from panics of the executor: a fault in the host's code ends that
// turn, not the host.
func (r *Runtime) guardTurn(turn *Turn, run func() Outcome) (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic in a turn", "agent", turn.agent.Name, "task_id", turn.task.key.Task, "panic", p)
			out = Outcome{Failure: &Failure{Cause: "host", Message: fmt.Sprint("internal error: ", p)}}
		}
	}()
	return run()
}

// readPast reads the record of an earlier attempt at the turn, else the tail of its
// agent's history. While the store fails it tries as long as the turn may take, or until
// its task ends.
func (r *Runtime) readPast(t *activeTask, setup *turnSetup) (prior *PriorAttempt, tail []abi.HistoryEntry, err error) {
	ctx, done := context.WithTimeoutCause(setup.ctx, setup.agent.wallLimit(), errTurnTime)
	defer done()
	if prior, err = r.loadPriorAttempt(ctx, t, setup.run.row, setup.rec); err != nil || prior != nil {
		return prior, nil, err
	}
	err = r.retryStore(ctx, func() (err error) {
		tail, err = r.loadTail(t, setup.agent.Name, setup.rec.History[setup.agent.Name])
		return err
	}, "read a history", "task_id", t.key.Task)
	if err != nil {
		return nil, nil, fmt.Errorf("read the history of agent %q: %w", setup.agent.Name, err)
	}
	return nil, tail, nil
}

// prepareTurn makes the turn: from the record of an earlier attempt, else from its row,
// the agent's state and the tail of its history.
func (r *Runtime) prepareTurn(t *activeTask, setup *turnSetup, prior *PriorAttempt, tail []abi.HistoryEntry) (*Turn, error) {
	token, _ := r.acquireHostToken(context.Background(), t.key.InstanceKey) // it ends: tokens come back
	defer token.release()
	r.refreshSetup(t, setup)
	if _, ok := setup.def.agent(setup.agent.Name); !ok {
		return nil, fmt.Errorf("agent %q is no longer part of swarm %q", setup.agent.Name, setup.def.Name)
	}
	if prior != nil {
		return r.newRepeatedTurn(t, setup, prior)
	}
	return r.newFreshTurn(t, setup, tail)
}

// refreshSetup takes the definition in force: a reload may have come while the store was
// read, and the turn must not have what was withdrawn.
func (r *Runtime) refreshSetup(t *activeTask, setup *turnSetup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	setup.def = r.effectiveDefinition(t.def)
	setup.run.def = setup.def
	if agent, ok := setup.def.agent(setup.agent.Name); ok {
		setup.agent = agent
	}
}

// loadTail returns the newest entries of an agent's history up to the count-th, from
// memory when this host has written all of them.
func (r *Runtime) loadTail(t *activeTask, agent string, count int64) ([]abi.HistoryEntry, error) {
	if count == 0 {
		return nil, nil
	}
	t.mu.Lock()
	tail, ok := t.tails[agent]
	t.mu.Unlock()
	if !ok {
		var err error
		tail, err = r.store.HistoryTail(r.lifetime, t.key, agent, abi.HistoryTailEntries, abi.HistoryTailBytes)
		if err != nil {
			return nil, err
		}
	}
	// A completion by another agent may have come since the turn began.
	for len(tail) > 0 && tail[len(tail)-1].Seq > count {
		tail = tail[:len(tail)-1]
	}
	return boundTail(tail), nil
}

// boundTail drops the oldest entries until the rest fits a turn's input.
func boundTail(tail []abi.HistoryEntry) []abi.HistoryEntry {
	size := 0
	for i := len(tail) - 1; i >= 0; i-- {
		size += entrySize(tail[i])
		if size > abi.HistoryTailBytes {
			return tail[i+1:]
		}
	}
	return tail
}

// entrySize is the approximate size of an entry in JSON; the fixed part is rounded up.
func entrySize(e abi.HistoryEntry) int {
	n := 160 + len(e.Message) + len(e.Note)
	if e.Call != nil {
		n += len(e.Call.Args)
	}
	if e.Result != nil {
		n += len(e.Result.Text)
	}
	return n
}
