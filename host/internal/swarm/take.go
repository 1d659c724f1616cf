package swarm

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// errTurnTime is the cause with which a turn is stopped that takes too long.
var errTurnTime = errors.New("the turn took longer than its limit")

// take turns a claim into a turn, if the task still wants one.
func (r *Runtime) take(claim ready) {
	t := claim.task
	defer r.release(t)
	defer r.settleSuspect(t, claim.agent)
	job, over := r.start(t, claim.agent)
	if over {
		r.limit(r.life, t)
		return
	}
	if job == nil {
		return
	}
	job.seat = claim.seat
	r.runTurn(t, job)
	r.kick(t)
}

// job is what a turn begins with.
type job struct {
	run   *run
	def   *Definition
	agent *Agent
	rec   Task
	state json.RawMessage
	ctx   context.Context
	watch *watch
	seat  *seat
}

// start takes the next row of an agent, if it may have it. over says that the task has used up
// its messages instead.
func (r *Runtime) start(t *live, name string) (j *job, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queued, name)
	q := t.queue[name]
	if t.rec.State != StateRunning || q == nil || q.Len() == 0 || t.running[name] != nil {
		return nil, false
	}
	counted := countsStep((*q)[0])
	if counted && t.limitReached() {
		return nil, !t.rec.Grace
	}
	if !r.mayRun(t, (*q)[0]) {
		return nil, false
	}
	def := r.today(t.def)
	agent, ok := def.agent(name)
	if !ok {
		// The definition that the task was begun with had this agent.
		agent = &Agent{Name: name}
	}
	row := heap.Pop(q).(Row)
	ctx, cancel := context.WithCancelCause(context.Background())
	rn := &run{row: row, def: def, cancel: cancel, counted: counted, interrupted: make(chan struct{})}
	t.running[name] = rn
	return &job{run: rn, def: def, agent: agent, rec: t.rec.clone(), state: t.states[name], ctx: ctx}, false
}

// countsStep reports whether a row counts towards the message limit: all but
// system messages that no turn caused and what came late, each once.
func countsStep(row Row) bool {
	if row.Suspended || row.Late {
		return false // it has been counted, or nobody here has asked for it
	}
	p := row.Message.Payload
	if p.Subject == mail.SubjectMaximumStepsReached {
		return false
	}
	return p.Sender.Type != mail.System || row.Cause != ""
}

// runTurn runs one turn to its commit.
func (r *Runtime) runTurn(t *live, j *job) {
	defer j.run.cancel(nil)
	defer r.watch(j)()
	past, err := r.past(t, j.run.row, j.rec)
	if err != nil {
		return // the host stops; the row is still in the store
	}
	t.recall(j.run, past)
	if f := r.barred(t, j); f != nil {
		r.failTurn(t, j, past, *f)
		return
	}
	turn, err := r.prepare(t, j, past)
	if err != nil && r.life.Err() != nil {
		return
	}
	if err != nil {
		r.failTurn(t, j, past, Failure{Cause: "host", Message: err.Error()})
		return
	}
	ctx, done := context.WithTimeoutCause(j.ctx, turn.wall(), errTurnTime)
	defer done()
	stop := context.AfterFunc(r.life, func() { j.run.cancel(errShutdown) })
	defer stop()
	out := r.execute(ctx, turn)
	j.seat.wait(false)
	if out.Failure != nil && errors.Is(context.Cause(ctx), errShutdown) {
		// The row stays in the store; the next start runs the turn again.
		t.commit.Lock()
		defer t.commit.Unlock()
		r.discard(t, j.run, turn, out)
		return
	}
	r.finish(t, j.run, turn, out)
}

// failTurn ends a turn that is not run.
func (r *Runtime) failTurn(t *live, j *job, past *Past, f Failure) {
	turn := &Turn{rt: r, task: t, def: j.def, agent: j.agent, run: j.run, row: j.run.row, rec: j.rec, past: past, start: r.now(), clock: newClock(r.now(), r.now)}
	r.finish(t, j.run, turn, Outcome{Failure: &f})
}

// execute is the fence around the executor: whatever a turn makes the host do
// wrong ends that turn, not the host.
func (r *Runtime) execute(ctx context.Context, turn *Turn) (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic in a turn", "agent", turn.agent.Name, "task_id", turn.task.key.Task, "panic", p)
			out = Outcome{Failure: &Failure{Cause: "host", Message: fmt.Sprint("internal error: ", p)}}
		}
	}()
	return r.exec.Execute(ctx, turn)
}

func (r *Runtime) prepare(t *live, j *job, past *Past) (*Turn, error) {
	if _, ok := j.def.agent(j.agent.Name); !ok {
		return nil, fmt.Errorf("agent %q is no longer part of swarm %q", j.agent.Name, j.def.Name)
	}
	if past != nil {
		return r.oldTurn(t, j, past)
	}
	var tail []abi.HistoryEntry
	err := r.soon("read a history", t, func() (err error) {
		tail, err = r.tail(t, j.agent.Name, j.rec.History[j.agent.Name])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of agent %q: %w", j.agent.Name, err)
	}
	return r.newTurn(t, j, tail)
}

// soon reads, and tries again while the store cannot: a disk that is slow for a
// moment must not end a user's task.
func (r *Runtime) soon(what string, t *live, read func() error) (err error) {
	for wait := 50 * time.Millisecond; wait < 5*time.Second; wait *= 2 {
		if err = read(); err == nil {
			return nil
		}
		r.log.Error("cannot "+what, "task_id", t.key.Task, "err", err)
		select {
		case <-time.After(wait):
		case <-r.life.Done():
			return err
		}
	}
	return err
}

// tail returns the newest entries of an agent's history up to the count-th,
// from memory when this host has seen all of them.
func (r *Runtime) tail(t *live, agent string, count int64) ([]abi.HistoryEntry, error) {
	if count == 0 {
		return nil, nil
	}
	t.mu.Lock()
	tail, ok := t.tails[agent]
	t.mu.Unlock()
	if !ok {
		var err error
		tail, err = r.store.HistoryTail(r.life, t.key, agent, abi.HistoryTailEntries, abi.HistoryTailBytes)
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

// entrySize is about what an entry takes in JSON; the fixed part is rounded up.
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
