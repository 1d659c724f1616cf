package swarm

import (
	"context"
	"errors"
	"slices"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// Bounds of timers.
const (
	// MaxTimers bounds the pending timers of a task.
	MaxTimers = 16
	MinTimer  = time.Millisecond
	MaxTimer  = 30 * 24 * time.Hour
)

// timer is a staged timer.
type timer struct {
	message mail.Message
	after   time.Duration
	due     time.Time
}

// SetTimer stages a message to the turn's agent that is due after a time, by the turn's
// clock. A refusal is INVALID or LIMIT.
func (t *Turn) SetTimer(after time.Duration, body string) (id string, fault *abi.Error) {
	switch {
	case after < MinTimer || after > MaxTimer:
		return "", abi.Errorf(abi.CodeInvalid, abi.OpTimerSet, "after", "after is %v; it must be from 1 ms to 30 days", after)
	case len(body) > MaxBody:
		return "", abi.Errorf(abi.CodeLimit, abi.OpTimerSet, "body", "body has %d bytes, at most %d", len(body), MaxBody)
	}
	if fault := t.checkQuota(abi.OpTimerSet, 1); fault != nil {
		return "", fault
	}
	if fault := t.reserveTimer(); fault != nil {
		return "", fault
	}
	at := t.clock.advanceToHost()
	m := newMessage(mail.Response, messageParts{
		task: t.task.key.Task, swarm: t.def.Name, id: t.newID(), payloadID: t.newID(), at: at,
		sender:     mail.Address{Type: mail.System, Name: t.def.Name},
		recipients: []mail.Address{{Type: mail.Agent, Name: t.agent.Name}},
		subject:    mail.SubjectTimer, body: body,
	})
	t.timers = append(t.timers, timer{m, after, at.Add(after)})
	return m.ID, nil
}

// reserveTimer reserves one of the task's timers.
func (t *Turn) reserveTimer() *abi.Error {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.replay == nil && t.task.countTimers() >= MaxTimers {
		return abi.Errorf(abi.CodeLimit, abi.OpTimerSet, "timers", "the task has %d timers pending, its limit; cancel one first", MaxTimers)
	}
	t.countTimer(1)
	return nil
}

// CancelTimer stages the cancellation of a timer that the agent has set in this task,
// while its message waits. Else it returns NOT_FOUND.
func (t *Turn) CancelTimer(id string) *abi.Error {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if i := slices.IndexFunc(t.timers, func(tm timer) bool { return tm.message.ID == id }); i >= 0 {
		t.timers = slices.Delete(t.timers, i, i+1)
		t.countTimer(-1)
		return nil
	}
	_, ok := t.task.findTimer(t.agent.Name, id)
	if (!ok || slices.Contains(t.cancelled, id)) && t.replay == nil {
		return abi.Errorf(abi.CodeNotFound, abi.OpTimerCancel, "timer", "agent %q has no timer %.64q pending in this task", t.agent.Name, id)
	}
	t.cancelled = append(t.cancelled, id)
	t.countTimer(-1)
	return nil
}

// countTimer counts what the turn has set, or cancelled, among the task's timers. The caller holds
// t.task.mu.
func (t *Turn) countTimer(n int) {
	if !t.isRepeatingItself() {
		t.run.timers += n
	}
}

// rowsLeft counts the task's rows without the timers that the turn has cancelled, its
// own row included. The caller holds t.task.mu.
func (t *Turn) rowsLeft() int {
	n := t.task.countPending()
	for _, id := range t.cancelled {
		if row, ok := t.task.findTimer(t.agent.Name, id); ok && !row.Stash {
			n--
		}
	}
	return n
}

// addTimers adds a turn's timers to its commit.
func (mut *mutationBuilder) addTimers(t *Turn) {
	name := t.agent.Name
	for _, id := range t.cancelled {
		row, ok := mut.active.findTimer(name, id)
		if !ok {
			continue
		}
		mut.voidRow(row)
		if !row.Stash || mut.Unstash {
			mut.progressing--
		}
		mut.logEvent("timer_cancelled", "agent "+name+" cancelled a timer", map[string]any{"caller": name, "timer_id": id})
	}
	for _, tm := range t.timers {
		mut.logEvent("timer_set", "agent "+name+" set a timer of "+tm.after.String(), map[string]any{
			"caller": name, "timer_id": tm.message.ID, "due": mail.FormatTime(tm.due),
		})
		mut.insertRow(Row{
			Agent: name, Tier: mail.Tier(tm.message), Message: tm.message, Origin: Origin{Door: "system"},
			Hops: t.row.Hops, Trace: t.trace, NotBefore: tm.due, Cause: t.id(),
		})
	}
}

func isTimer(row Row) bool { return row.Message.Payload.Subject == mail.SubjectTimer }

// findTimer finds the row of an agent's timer in the queue or the stash.
func (t *activeTask) findTimer(agent, id string) (found Row, ok bool) {
	t.visitRows(func(row Row) {
		if row.Agent == agent && isTimer(row) && row.Message.ID == id {
			found, ok = row, true
		}
	})
	return found, ok
}

// countTimers counts the waiting timers, and those that running turns have set.
func (t *activeTask) countTimers() (n int) {
	t.visitRows(func(row Row) {
		if isTimer(row) {
			n++
		}
	})
	for _, rn := range t.running {
		n += rn.timers
	}
	return n
}

func (t *activeTask) visitRows(visit func(Row)) {
	for _, q := range t.queue {
		for _, row := range *q {
			visit(row)
		}
	}
	for _, rows := range [][]Row{t.delayed, t.stash} {
		for _, row := range rows {
			visit(row)
		}
	}
}

// queueDueRows moves the rows whose time has come into the queue.
func (t *activeTask) queueDueRows(now time.Time) {
	t.delayed = slices.DeleteFunc(t.delayed, func(row Row) bool {
		if row.NotBefore.After(now) {
			return false
		}
		row.QueuedAt = now
		t.pushRow(row)
		return true
	})
}

// nextWakeup is the time of the task's next wakeup: its deadline, or the time of its
// next row. The zero time is never.
func (t *activeTask) nextWakeup() time.Time {
	at := t.rec.Deadline
	for _, row := range t.delayed {
		if at.IsZero() || row.NotBefore.Before(at) {
			at = row.NotBefore
		}
	}
	return at
}

// wakeTask handles a task's wakeup: it ends a task whose time is up, and queues rows
// whose time has come. A task that cannot be read is woken again a little later.
func (r *Runtime) wakeTask(ctx context.Context, key TaskKey) {
	t, err := r.acquireExisting(ctx, key)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrErasing) || errors.Is(err, ErrElsewhere) {
		return
	}
	if err != nil {
		r.log.Error("cannot wake a task", "task_id", key.Task, "err", err)
		r.wakeups.Set(key, r.now().Add(maxPause))
		return
	}
	defer r.releaseTask(t)
	r.expireTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	r.afterCommit(t)
}
