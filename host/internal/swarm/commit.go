package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"skep/abi"
	"skep/spec/mail"
)

// finish commits a turn that has returned, or gives its row back when the
// task ended under it.
func (r *Runtime) finish(t *live, rn *run, turn *Turn, out Outcome) {
	t.commit.Lock()
	defer t.commit.Unlock()

	t.mu.Lock()
	if rn.killed {
		t.mu.Unlock()
		r.discard(t, rn, turn, out)
		return
	}
	s := t.conclude(rn, turn, out, r.now())
	t.mu.Unlock()

	err := r.commit(s.Step)
	if errors.Is(err, ErrQuota) {
		// Others have filled the scope since the turn staged its values.
		t.mu.Lock()
		s = t.conclude(rn, turn, out.overQuota(err), r.now())
		t.mu.Unlock()
		err = r.commit(s.Step)
	}
	if err != nil {
		// The host stops; the row is still in the store and the turn is
		// run again at the next start.
		return
	}
	if out.Suspended == nil {
		turn.flushMetrics()
	}
	t.mu.Lock()
	delete(t.running, rn.row.Agent)
	if out.Suspended != nil {
		rn.row.Recorded, rn.row.Suspended, rn.row.Stash = true, true, true
		t.stash = append(t.stash, rn.row)
	}
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
	turn.flushLogs()
}

// conclude makes the step that ends a turn.
func (t *live) conclude(rn *run, turn *Turn, out Outcome, now time.Time) *step {
	s := t.begin(now)
	s.charge(rn, out.Usage)
	s.conclude(turn, out)
	s.settle()
	s.Record = turn.closing(out, s.now)
	return s
}

// conclude puts what a turn came to into its step.
func (s *step) conclude(t *Turn, out Outcome) {
	if out.Suspended != nil {
		s.suspend(t, out.Suspended)
		return
	}
	if out.Failure == nil {
		s.consume(t.row)
		s.succeed(t, out)
		return
	}
	b, rebased := s.rebases(t, *out.Failure)
	s.consume(t.row)
	if rebased && s.Task.State == StateRunning {
		s.rebase(t, b, out.Failure.Message)
		return
	}
	s.fail(t, *out.Failure)
}

// discard settles what a turn has cost whose effects do not count. Its row stays,
// and may be run again. The caller holds t.commit.
func (r *Runtime) discard(t *live, rn *run, turn *Turn, out Outcome) {
	t.mu.Lock()
	s := t.begin(r.now())
	s.meter(rn, out.Usage)
	t.mu.Unlock()
	if !r.write(s.Step) {
		return
	}
	t.mu.Lock()
	delete(t.running, rn.row.Agent)
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
	turn.flushLogs()
}

// write commits a step without values and reports whether it could.
func (r *Runtime) write(s Step) bool { return r.commit(s) == nil }

// commit commits a step, and tries again while the store cannot: the turn has
// run and its effects are decided. It gives up when the runtime stops, and with
// [ErrQuota].
func (r *Runtime) commit(s Step) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := r.store.Commit(context.WithoutCancel(r.life), s)
		if err == nil || errors.Is(err, ErrQuota) {
			return err
		}
		r.log.Error("cannot commit", "task_id", s.Task.Key.Task, "err", err)
		if errors.Is(err, ErrFenced) {
			// Another host owns the data; whatever this one does is lost.
			r.end(ErrFenced)
			return err
		}
		select {
		case <-time.After(wait):
		case <-r.life.Done():
			return err
		}
	}
}

// charge counts a turn and what it cost.
func (s *step) charge(rn *run, u Usage) {
	s.cost = &u
	s.meter(rn, u)
	if rn.counted {
		s.Task.Steps++
	}
}

// succeed applies a turn that returned ok.
func (s *step) succeed(t *Turn, out Outcome) {
	name := t.agent.Name
	s.output(t, false)
	if !t.ignored && t.row.Message.Payload.Subject != mail.SubjectActionCompleteBcast {
		s.rememberMessage(name, t.row.N, t.row.Message)
	}
	s.stage(t)
	s.stageKV(t)
	s.Blobs = t.blobs.list
	s.stageTimers(t)
	s.followUp(t)
	for _, note := range out.Result.Notes {
		s.remember(name, t.row.N, abi.HistoryEntry{Kind: abi.KindNote, Note: note})
	}
	if st := out.Result.State; st != nil {
		if string(st) == "null" {
			st = nil
		}
		s.States = append(s.States, AgentState{name, st})
	}
}

// fail consumes the message of a failed turn: it is kept in the history with
// its error, and whoever sent it is told (§12 "Ends of a task").
func (s *step) fail(t *Turn, f Failure) {
	name := t.agent.Name
	text := failureText(name, f)
	s.failed = text
	s.output(t, true)
	s.rememberMessage(name, t.row.N, t.row.Message)
	s.remember(name, t.row.N, abi.HistoryEntry{Kind: abi.KindNote, Note: "turn failed: " + text})
	s.event("agent_error", "agent "+name+": "+text, map[string]any{
		"caller": name, "cause": f.Cause, "limit": f.Limit, "message_id": t.row.Message.ID,
	})
	if s.Task.State != StateRunning {
		return
	}
	sender := t.row.Message.Payload.Sender
	switch {
	case (sender.Type == mail.User || sender.Type == mail.Admin) && t.run.preempted:
		// The interrupt is the next turn, come what may.
	case sender.Type == mail.User || sender.Type == mail.Admin,
		s.Task.Grace && voidAfter(&t.row):
		s.endBySystem(StateFailed, mail.SubjectAgentError, text)
	case sender.Type == mail.Agent:
		if _, ok := s.def.agent(sender.Name); ok {
			s.closeRequest(t.row.Message.Payload.ID)
			s.sendSystem(mail.Response, sender.Name, mail.SubjectAgentError, text, t.id())
		} else if abroad(sender.Name) {
			s.failAbroad(t.row.Message, text)
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

// limit replaces the message in hand, once a task has used up its messages,
// by one to the entrypoint that asks it to finish. All that waits is kept in
// the stash.
func (r *Runtime) limit(ctx context.Context, t *live) {
	text := r.limitText(ctx, t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	if t.rec.State != StateRunning || t.rec.Grace || !t.limitReached() {
		t.mu.Unlock()
		return
	}
	s := t.begin(r.now())
	s.Task.Grace = true
	s.Stash = true
	s.left = len(t.running)
	s.sendSystem(mail.Response, s.Task.Entrypoint, mail.SubjectMaximumStepsReached, text, "")
	t.mu.Unlock()
	if !r.write(s.Step) {
		return
	}
	t.mu.Lock()
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
}

// limitReached reports whether the turns done and under way use up the limit.
func (t *live) limitReached() bool {
	if t.rec.MaxSteps <= 0 {
		return false
	}
	n := t.rec.Steps
	for _, rn := range t.running {
		if rn.counted {
			n++
		}
	}
	return n >= t.rec.MaxSteps
}

// transcript bounds the copy of a task that the limit message carries.
const transcript = 32 << 10

// limitText asks for completion and tells what has happened so far.
func (r *Runtime) limitText(ctx context.Context, t *live) string {
	t.mu.Lock()
	after, limit := max(0, t.rec.Cursor-200), t.rec.MaxSteps
	t.mu.Unlock()
	events, err := r.store.Events(ctx, t.key, after, 200)
	if err != nil {
		r.log.Error("cannot read the task's events", "task_id", t.key.Task, "err", err)
	}
	text := fmt.Sprintf("The task has used its limit of %d messages. Call task_complete now with the best answer you have; anything else ends the task without one.\n", limit)
	for _, e := range events {
		if m, ok := e.message(); ok && len(text) < transcript {
			p := m.Payload
			text += fmt.Sprintf("\n%s -> %s [%s] %s\n", p.Sender.Name, p.Recipient().Name, p.Subject, p.Body)
		}
	}
	if len(text) > transcript {
		text = text[:runeStart(text, transcript)] + "…"
	}
	return text
}

// runeStart is where the rune begins that byte i of a text belongs to.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// message returns the message a new_message event carries.
func (e Event) message() (mail.Message, bool) {
	if e.Name != "new_message" {
		return mail.Message{}, false
	}
	var extra struct {
		Message *mail.Message `json:"full_message"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil || extra.Message == nil {
		return mail.Message{}, false
	}
	return *extra.Message, true
}
