package swarm

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// mutationBuilder builds one [Mutation] of a task in memory. It changes nothing until
// the store has the mutation and Runtime.applyMutation is called.
type mutationBuilder struct {
	Mutation
	def    *Definition
	now    time.Time
	active *activeTask
	// progressing counts the rows that can still make the task progress.
	progressing int
	// undelivered counts the outbox messages whose delivery the task waits for.
	undelivered int
	// ended is set when the mutation ends the task, kill when the running turns must
	// stop.
	ended, kill bool
	// resolved are the answers of this mutation to waiting posts.
	resolved    map[PendingPost]Answer
	postChanges postChanges
	// unread are consumed rows that no turn has.
	unread []int64
	// cost is the usage of the turn that is committed; the log shows it with the first
	// message that the turn has sent.
	cost *Usage
	// models are those that the turn has called.
	models []string
	// finished is the turn that runs no more when the mutation is applied, nil for none.
	finished *runningTurn
	// failed is why the turn that is committed has failed.
	failed string
	// turn is the turn that is committed, nil for other mutations.
	turn *CommittedTurn
}

// beginMutation starts a mutation. The caller holds t.commit and t.mu.
func (t *activeTask) beginMutation(now time.Time) *mutationBuilder {
	mut := &mutationBuilder{def: t.def, now: now, active: t, progressing: t.countPending(), undelivered: t.countUndelivered()}
	mut.Task = t.rec.clone()
	mut.Task.Updated = now
	mut.Task.Mutations++
	if mut.Task.History == nil {
		mut.Task.History = map[string]int64{}
	}
	return mut
}

// build returns the mutation, with what follows from all of its changes. The caller holds t.commit.
func (mut *mutationBuilder) build() Mutation {
	mut.withdrawResolved()
	return mut.Mutation
}

// consumeRow takes the row of a running turn off the queue.
func (mut *mutationBuilder) consumeRow(row Row) {
	mut.Consume = append(mut.Consume, row.N)
	mut.dropBreakpoint(row.N)
	delete(mut.Task.Metered, row.N)
	mut.markHandled(row.N)
	mut.progressing--
}

// voidRow takes a row without a turn off the queue or out of the stash.
func (mut *mutationBuilder) voidRow(row Row) {
	mut.Consume = append(mut.Consume, row.N)
	delete(mut.Task.Metered, row.N)
	mut.unread = append(mut.unread, row.N)
}

// insertRow adds a row for one recipient and logs its new_message event. A row
// for a task that no longer runs joins the stash.
func (mut *mutationBuilder) insertRow(row Row) int64 {
	row = mut.addRow(row)
	mut.logMessage(row.Message, map[string]any{"recipient": row.Agent})
	return row.N
}

// nextNumber returns the next row number.
func (mut *mutationBuilder) nextNumber() int64 {
	mut.Task.Rows++
	return mut.Task.Rows
}

// addRow adds a row without an event.
func (mut *mutationBuilder) addRow(row Row) Row {
	row.N = mut.nextNumber()
	row.Trace = mut.rowTrace(row.Trace)
	row.Stash = mut.Task.State != StateRunning || mut.Task.Grace && row.Message.Payload.Subject != mail.SubjectMaximumStepsReached
	if !row.Stash {
		mut.progressing++
	}
	mut.Insert = append(mut.Insert, row)
	return row
}

// logMessage logs that a message was made.
func (mut *mutationBuilder) logMessage(m mail.Message, extra map[string]any) {
	if mut.cost != nil {
		cost := map[string]any{
			"fuel": mut.cost.Fuel, "cpu_ms": float64(mut.cost.CPU.Microseconds()) / 1e3, "host_calls": mut.cost.HostCalls,
		}
		if mut.cost.Spend != (Spend{}) {
			cost["tokens"], cost["micro_usd"] = mut.cost.Tokens, mut.cost.MicroUSD
			if len(mut.models) > 0 {
				cost["models"] = mut.models
			}
		}
		extra["cost"] = cost
		mut.cost = nil
	}
	raw, err := m.AppendJSON([]byte(`{"full_message":`))
	if err != nil { // the message was validated; the log must be JSON in any case
		raw = append(raw, "null"...)
	}
	rest, _ := json.Marshal(extra) // the values always encode
	mut.appendEvent("new_message", "", append(append(raw, ','), rest[1:]...))
}

// logEvent logs an event. An empty description is rendered when it is read.
func (mut *mutationBuilder) logEvent(name, description string, extra map[string]any) int64 {
	var raw json.RawMessage
	if len(extra) > 0 {
		// The values always encode.
		raw, _ = json.Marshal(extra)
	}
	return mut.appendEvent(name, description, raw)
}

func (mut *mutationBuilder) appendEvent(name, description string, extra json.RawMessage) int64 {
	mut.Task.Cursor++
	mut.Events = append(mut.Events, Event{
		Seq: mut.Task.Cursor, Name: name, Time: mut.now, Description: description, Extra: extra,
	})
	return mut.Task.Cursor
}

// appendHistory appends to one agent's history.
func (mut *mutationBuilder) appendHistory(agent string, turn int64, e abi.HistoryEntry) {
	mut.Task.History[agent]++
	e.Seq, e.Turn = mut.Task.History[agent], turn
	if e.Time == "" {
		e.Time = mail.FormatTime(mut.now)
	}
	mut.History = append(mut.History, AgentEntry{agent, e})
}

func (mut *mutationBuilder) appendHistoryMessage(agent string, turn int64, m mail.Message) {
	raw, _ := m.AppendJSON(nil) // the message was validated
	mut.appendHistory(agent, turn, abi.HistoryEntry{Kind: abi.KindIn, Message: raw})
}

// applyStallRule ends a running task without a row that could make it progress, in this
// very mutation (the stall rule).
func (mut *mutationBuilder) applyStallRule() {
	mut.completeRemotePosts()
	if mut.Task.State != StateRunning || mut.progressing > 0 || mut.undelivered > 0 {
		return
	}
	if mut.Task.Brief && !mut.Task.Grace && !mut.Task.hasRemoteRequest() {
		mut.endBriefTask()
		return
	}
	if mut.Task.waitsForRemote() {
		return
	}
	if mut.Task.Grace {
		mut.endBySystem(StateFailed, mail.SubjectRuntimeError, mut.graceText())
		return
	}
	text := "stalled: no message is waiting and no agent has completed the task, so nothing could happen any more"
	if mut.failed != "" {
		text += "; " + mut.failed // a system message has no sender that could be notified
	}
	mut.endBySystem(StateFailed, mail.SubjectRuntimeError, text)
}

// resolvePost records the answer to a post, and keeps it for its waiter.
func (mut *mutationBuilder) resolvePost(p PendingPost, a Answer) {
	a.Metered = mut.Task.Usage.Spend != (Spend{})
	if p.Key != "" {
		mut.Answers = append(mut.Answers, SubmissionAnswer{p.Door, p.Key, a.Cursor})
	}
	if mut.resolved == nil {
		mut.resolved = map[PendingPost]Answer{}
	}
	mut.resolved[p] = a
}

// applyMutation makes a durable mutation visible in memory. Its answers come last: a caller
// that posts again after an answer finds the load without the task that has ended. part is
// the post's part of the quota, nil for none. The caller holds t.commit and t.mu, and
// shows the change to the observer once it has released t.mu.
func (r *Runtime) applyMutation(t *activeTask, mut *mutationBuilder, part *reservation) Change {
	change := mut.change(t)
	t.exists, t.rec = true, mut.Task
	if mut.finished != nil {
		delete(t.running, mut.finished.row.Agent)
	}
	t.dropRows(mut.unread)
	t.stopVoidTurns(mut.unread)
	switch {
	case mut.Stash:
		t.stashRunningTurns(mut.kill)
		t.stashRows()
	case mut.Unstash:
		t.unstashRows(mut.now)
	}
	for _, row := range mut.Insert {
		row.QueuedAt = mut.now
		t.enqueueRow(row)
	}
	t.applyOutbox(mut.Mutation)
	t.keepAnswers(mut.resolved)
	t.preemptTurns(mut.Insert)
	for _, e := range mut.History {
		t.extendTail(e)
	}
	for _, st := range mut.States {
		t.states[st.Agent] = st.State
	}
	t.openPosts.applyChanges(mut.postChanges)
	r.countLoad(t, part)
	for post, answer := range mut.resolved {
		for _, ch := range t.waiters[post] {
			ch <- answer
		}
		delete(t.waiters, post)
	}
	t.notifyFollowers()
	return change
}

// stashRunningTurns stops the running turns, if the task ended under them; their input
// stays in the stash.
func (t *activeTask) stashRunningTurns(kill bool) {
	if !kill {
		return
	}
	for _, rn := range t.running {
		if rn.killed {
			continue
		}
		rn.killed = true
		t.stash = append(t.stash, rn.row)
		rn.cancel(errTaskEnded)
	}
}

// stopVoidTurns stops turns whose rows are void: they began while that was being written.
func (t *activeTask) stopVoidTurns(numbers []int64) {
	for _, rn := range t.running {
		if slices.Contains(numbers, rn.row.N) {
			rn.killed, rn.void = true, true
			rn.cancel(errRowVoid)
		}
	}
}

// extendTail keeps the tail of a history in memory within the bounds of a turn's input.
// A tail that was never loaded stays unloaded.
func (t *activeTask) extendTail(e AgentEntry) {
	tail, ok := t.tails[e.Agent]
	if !ok && e.Entry.Seq > 1 {
		return
	}
	full := append(tail, e.Entry)
	tail = boundTail(full[max(0, len(full)-abi.HistoryTailEntries):])
	if len(tail) < len(full) {
		tail = slices.Clone(tail) // frees the entries that were dropped
	}
	t.tails[e.Agent] = tail
}

// commitMutation commits and applies a mutation. It fails only when the host stops, or
// the tenant is being erased. The caller holds t.commit.
func (r *Runtime) commitMutation(t *activeTask, mut *mutationBuilder) error {
	if err := t.checkHere(); err != nil {
		return err
	}
	if mut.Task.Key == (TaskKey{}) { // it was erased since the caller has found it
		return refuse(ErrNotFound, "task '%s' not found", t.key.Task)
	}
	err := r.commitWithRetry(mut.build())
	if errors.Is(err, ErrErasing) {
		r.dropTask(t)
		return err
	}
	if err != nil {
		return ErrDraining
	}
	t.mu.Lock()
	change := r.applyMutation(t, mut, nil)
	t.mu.Unlock()
	r.afterCommit(t)
	r.observer.Committed(change)
	return nil
}
