package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// commitTurn commits a turn that has returned, or gives its row back when the task
// ended under it.
func (r *Runtime) commitTurn(t *activeTask, rn *runningTurn, turn *Turn, out Outcome) {
	t.commit.Lock()
	defer t.commit.Unlock()
	token, _ := r.acquireHostToken(context.Background(), t.key.InstanceKey) // it ends: tokens come back
	defer token.release()
	t.mu.Lock()
	if rn.dropped {
		t.mu.Unlock()
		return
	}
	if rn.killed {
		t.mu.Unlock()
		token.release()
		r.discardTurn(t, rn, turn, out)
		return
	}
	mut := t.buildTurnCommit(rn, turn, out, r.now())
	mut.Encoded = token.release
	t.mu.Unlock()

	err := r.commitWithRetry(mut.build())
	if errors.Is(err, ErrQuota) {
		// Other turns have filled the scope since the turn staged its values.
		t.mu.Lock()
		mut = t.buildTurnCommit(rn, turn, out.failOverQuota(err), r.now())
		t.mu.Unlock()
		err = r.commitWithRetry(mut.build())
	}
	if errors.Is(err, ErrErasing) {
		r.dropTask(t)
	}
	if err != nil {
		return // or the host stops
	}
	if out.Suspended == nil {
		turn.flushMetrics()
	}
	turn.buffer.close() // before the answer, after which a caller posts again
	t.mu.Lock()
	if out.Suspended != nil {
		rn.row.MayHaveRecord, rn.row.Suspended, rn.row.Stash = true, true, true
		t.stash = append(t.stash, rn.row)
	}
	change := r.applyMutation(t, mut, nil)
	t.mu.Unlock()
	r.afterCommit(t)
	r.observer.Committed(change)
	turn.flushLogs()
}

// buildTurnCommit makes the mutation that ends a turn.
func (t *activeTask) buildTurnCommit(rn *runningTurn, turn *Turn, out Outcome, now time.Time) *mutationBuilder {
	mut := t.beginMutation(now)
	mut.finished, mut.turn = rn, newCommittedTurn(turn, out, now)
	mut.chargeTurn(rn, out.Usage)
	if out.Suspended == nil {
		mut.logLines(turn)
	}
	mut.applyOutcome(turn, out)
	mut.applyStallRule()
	mut.Record = turn.finalRecord(out, mut.now)
	return mut
}

// applyOutcome adds a turn's outcome to the mutation.
func (mut *mutationBuilder) applyOutcome(t *Turn, out Outcome) {
	if out.Suspended != nil {
		mut.suspendTurn(t, out.Suspended)
		return
	}
	if out.Failure == nil {
		mut.consumeRow(t.row)
		mut.applySuccess(t, out)
		return
	}
	b, rebased := mut.findRebase(t, *out.Failure)
	mut.consumeRow(t.row)
	if rebased && mut.Task.State == StateRunning {
		mut.rebaseTurn(t, b, out.Failure.Message)
		return
	}
	mut.applyFailure(t, *out.Failure)
}

// discardTurn adds the usage of a turn whose effects do not count. Its row stays, and
// may be run again. The caller holds t.commit.
func (r *Runtime) discardTurn(t *activeTask, rn *runningTurn, turn *Turn, out Outcome) {
	t.mu.Lock()
	mut := t.beginMutation(r.now())
	mut.finished = rn
	mut.addUsage(rn, out.Usage)
	if rn.void {
		delete(mut.Task.Metered, rn.row.N)
	}
	t.mu.Unlock()
	if r.commitMutation(t, mut) == nil {
		turn.flushLogs()
	}
}

// chargeTurn counts a turn and its usage.
func (mut *mutationBuilder) chargeTurn(rn *runningTurn, u Usage) {
	mut.cost, mut.models = &u, rn.models
	mut.addUsage(rn, u)
	mut.addModelFailures(rn)
	if rn.counted {
		mut.Task.Steps++
	}
}

// applySuccess adds the effects of a turn that returned ok.
func (mut *mutationBuilder) applySuccess(t *Turn, out Outcome) {
	name := t.agent.Name
	mut.logEmitted(t, false)
	if !t.ignored && t.row.Message.Payload.Subject != mail.SubjectActionCompleteBcast {
		mut.appendHistoryMessage(name, t.row.N, t.row.Message)
	}
	mut.addStagedCalls(t)
	mut.addKVWrites(t)
	mut.Blobs = t.blobs.list
	mut.addTimers(t)
	mut.sendFollowUp(t)
	for _, note := range out.Result.Notes {
		mut.appendHistory(name, t.row.N, abi.HistoryEntry{Kind: abi.KindNote, Note: note})
	}
	if st := out.Result.State; st != nil {
		if string(st) == "null" {
			st = nil
		}
		mut.States = append(mut.States, AgentState{name, st})
	}
}

// applyFailure consumes the message of a failed turn: it is kept in the history with
// its error, and its sender gets a system message.
func (mut *mutationBuilder) applyFailure(t *Turn, f Failure) {
	name := t.agent.Name
	text := failureText(name, f)
	mut.failed = text
	mut.addCount(UsageKey{Agent: name, Cause: f.Cause}, UsageSum{Failures: 1})
	mut.logEmitted(t, true)
	mut.appendHistoryMessage(name, t.row.N, t.row.Message)
	mut.appendHistory(name, t.row.N, abi.HistoryEntry{Kind: abi.KindNote, Note: "turn failed: " + text})
	mut.logEvent("agent_error", "agent "+name+": "+text, map[string]any{
		"caller": name, "cause": f.Cause, "limit": f.Limit, "message_id": t.row.Message.ID,
	})
	if mut.Task.State != StateRunning {
		return
	}
	sender := t.row.Message.Payload.Sender
	switch {
	case (sender.Type == mail.User || sender.Type == mail.Admin) && t.run.preempted:
		// The interrupt is the next turn in any case.
	case sender.Type == mail.User || sender.Type == mail.Admin,
		mut.Task.Grace && isLimitMessage(&t.row):
		mut.endBySystem(StateFailed, mail.SubjectAgentError, text)
	case sender.Type == mail.Agent:
		if _, ok := mut.def.agent(sender.Name); ok {
			mut.closeRequest(t.row.Message.Payload.ID)
			mut.sendFailedAnswer(t.row.Message.Type, t.row.Message.Payload.ID, sender.Name, mail.SubjectAgentError, text, t.id())
		} else if isRemote(sender.Name) {
			mut.failRemoteRequest(name, t.row.Message, text)
		}
	}
}

func failureText(agent string, f Failure) string {
	text := fmt.Sprintf("agent %q failed (%s): %s", agent, f.Cause, f.Message)
	if f.Limit != "" {
		text += fmt.Sprintf("; the limit is [agents.%s] %s", agent, f.Limit)
	}
	return text
}
