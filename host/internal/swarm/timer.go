package swarm

import (
	"context"
	"slices"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// Bounds of timers.
const (
	// MaxTimers is how many a task has pending at most.
	MaxTimers = 16
	MinTimer  = time.Millisecond
	MaxTimer  = 30 * 24 * time.Hour
)

// timer is one that a turn has set and not committed.
type timer struct {
	message mail.Message
	after   time.Duration
	due     time.Time
}

// SetTimer stages a message to the turn's agent that comes when after has
// passed, counted by the turn's clock. A refusal is INVALID or LIMIT.
func (t *Turn) SetTimer(after time.Duration, body string) (id string, fault *abi.Error) {
	switch {
	case after < MinTimer || after > MaxTimer:
		return "", abi.Errorf(abi.CodeInvalid, abi.OpTimerSet, "after", "after is %v; it must be from 1 ms to 30 days", after)
	case len(body) > MaxBody:
		return "", abi.Errorf(abi.CodeLimit, abi.OpTimerSet, "body", "body has %d bytes, at most %d", len(body), MaxBody)
	}
	if fault := t.fits(abi.OpTimerSet, 1); fault != nil {
		return "", fault
	}
	if fault := t.reserveTimer(); fault != nil {
		return "", fault
	}
	at := t.clock.tick()
	m := compose(mail.Response, envelope{
		task: t.task.key.Task, swarm: t.def.Name, id: t.newID(), payloadID: t.newID(), at: at,
		sender:     mail.Address{Type: mail.System, Name: t.def.Name},
		recipients: []mail.Address{{Type: mail.Agent, Name: t.agent.Name}},
		subject:    mail.SubjectTimer, body: body,
	})
	t.timers = append(t.timers, timer{m, after, at.Add(after)})
	return m.ID, nil
}

// reserveTimer takes one of the timers that the task may have.
func (t *Turn) reserveTimer() *abi.Error {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.again == nil && t.task.timersPending() >= MaxTimers {
		return abi.Errorf(abi.CodeLimit, abi.OpTimerSet, "timers", "the task has %d timers pending, its limit; cancel one first", MaxTimers)
	}
	t.run.timers++
	return nil
}

// CancelTimer stages the end of a timer that the agent has set in this task,
// whether its time has come or not, as long as its message waits. Else it
// answers NOT_FOUND.
func (t *Turn) CancelTimer(id string) *abi.Error {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if i := slices.IndexFunc(t.timers, func(tm timer) bool { return tm.message.ID == id }); i >= 0 {
		t.timers = slices.Delete(t.timers, i, i+1)
		t.run.timers--
		return nil
	}
	_, ok := t.task.timer(t.agent.Name, id)
	if (!ok || slices.Contains(t.cancelled, id)) && t.again == nil {
		return abi.Errorf(abi.CodeNotFound, abi.OpTimerCancel, "timer", "agent %q has no timer %.64q pending in this task", t.agent.Name, id)
	}
	t.cancelled = append(t.cancelled, id)
	t.run.timers--
	return nil
}

// rowsLeft counts the rows that would be left for the task behind what the turn
// has cancelled, its own included. The caller holds t.task.mu.
func (t *Turn) rowsLeft() int {
	n := t.task.pending()
	for _, id := range t.cancelled {
		if row, ok := t.task.timer(t.agent.Name, id); ok && !row.Stash {
			n--
		}
	}
	return n
}

// stageTimers writes a turn's timers into its commit.
func (s *step) stageTimers(t *Turn) {
	name := t.agent.Name
	for _, id := range t.cancelled {
		row, ok := s.live.timer(name, id)
		if !ok {
			continue
		}
		s.void(row)
		if !row.Stash || s.Unstash {
			s.left--
		}
		s.event("timer_cancelled", "agent "+name+" cancelled a timer", map[string]any{"caller": name, "timer_id": id})
	}
	for _, tm := range t.timers {
		s.event("timer_set", "agent "+name+" set a timer of "+tm.after.String(), map[string]any{
			"caller": name, "timer_id": tm.message.ID, "due": mail.FormatTime(tm.due),
		})
		s.insert(Row{
			Agent: name, Tier: mail.Tier(tm.message), Message: tm.message, Origin: Origin{Door: "system"},
			Hops: t.row.Hops, Trace: t.row.Trace, NotBefore: tm.due, Cause: t.id(),
		})
	}
}

func isTimer(row Row) bool { return row.Message.Payload.Subject == mail.SubjectTimer }

// timer finds the row of an agent's timer that waits, or is in the stash.
func (t *live) timer(agent, id string) (found Row, ok bool) {
	t.eachWaiting(func(row Row) {
		if row.Agent == agent && isTimer(row) && row.Message.ID == id {
			found, ok = row, true
		}
	})
	return found, ok
}

// timersPending counts the timers that wait, and those that turns under way have
// set.
func (t *live) timersPending() (n int) {
	t.eachWaiting(func(row Row) {
		if isTimer(row) {
			n++
		}
	})
	for _, rn := range t.running {
		n += rn.timers
	}
	return n
}

func (t *live) eachWaiting(visit func(Row)) {
	for _, q := range t.queue {
		for _, row := range *q {
			visit(row)
		}
	}
	for _, rows := range [][]Row{t.later, t.stash} {
		for _, row := range rows {
			visit(row)
		}
	}
}

// ripen queues the rows whose time has come.
func (t *live) ripen(now time.Time) {
	t.later = slices.DeleteFunc(t.later, func(row Row) bool {
		if row.NotBefore.After(now) {
			return false
		}
		t.push(row)
		return true
	})
}

// wake is when the task's alarm must ring: at its deadline, or when the time of
// the next row comes. The zero time is never.
func (t *live) wake() time.Time {
	at := t.rec.Deadline
	for _, row := range t.later {
		if at.IsZero() || row.NotBefore.Before(at) {
			at = row.NotBefore
		}
	}
	return at
}

// ring does what a task's alarm was set for: it ends a task whose time is up,
// and queues rows whose time has come.
func (r *Runtime) ring(ctx context.Context, key TaskKey) {
	r.expire(ctx, key)
	t, err := r.existing(ctx, key)
	if err != nil {
		return // expire has told
	}
	defer r.release(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	r.applied(t)
}
