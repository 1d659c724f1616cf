package swarm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// later is a host's clock that a test moves forward.
type later struct{ by atomic.Int64 }

func (l *later) now() time.Time { return time.Now().Add(time.Duration(l.by.Load())) }

func (l *later) pass(d time.Duration) { l.by.Add(int64(d)) }

// sets makes an agent that sets timers on a user's message and waits, and else
// follows the rules of the script agent.
func sets(after ...time.Duration) behave {
	return func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		if incoming(t).Payload.Sender.Type != mail.User {
			return script(ctx, t)
		}
		for _, d := range after {
			if _, fault := t.SetTimer(d, "after "+d.String()); fault != nil {
				return failed(fault)
			}
		}
		call(t, mail.ToolAwaitMessage, obj{})
		return swarm.Outcome{}
	}
}

// A timer is a message of the system that comes when it is due. It counts towards the
// message limit, keeps the task alive, and lets await_message succeed.
func TestTimerComes(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = sets(5*time.Millisecond, time.Hour)
	if a := h.ask("go", task("t")); a.Body != "boss got [::timer::] after 5ms" || a.State != swarm.StateCompleted {
		t.Errorf("%+v", a)
	}
	snap := h.record("t")
	if snap.Task.Steps != 2 || len(snap.Rows) != 1 || !snap.Rows[0].Stash {
		t.Errorf("%d steps, rows %+v", snap.Task.Steps, snap.Rows)
	}
	got := names(h.events("t"))
	want := []string{"new_message", "tool_call", "await_message", "timer_set", "new_message", "timer_set", "new_message"}
	if !slices.Equal(got[:len(want)], want) {
		t.Errorf("events %v", got)
	}
	for _, e := range h.events("t") {
		if e.Name == "timer_set" && (!strings.HasPrefix(e.Text(), "agent boss set a timer of ") || !strings.Contains(string(e.Extra), `"due":"20`)) {
			t.Errorf("%s %s", e.Text(), e.Extra)
		}
	}
	m := h.history("t", "boss")
	if !slices.ContainsFunc(m, func(e abi.HistoryEntry) bool { return strings.Contains(string(e.Message), mail.SubjectTimer) }) {
		t.Errorf("the history does not have the message: %+v", m)
	}
}

// A timer survives a restart, and one whose time came meanwhile comes late.
func TestTimerOverRestart(t *testing.T) {
	t.Parallel()
	var clock later
	h := newHive(t, func(h *hive) { h.opt.Now = clock.now; h.def.Limits.TaskTimeout = 0 })
	h.agents.by["boss"] = sets(10 * time.Hour)
	h.mustPost("go", task("t"), func(p *swarm.Post) { p.Key = "k" })
	eventually(t, "the timer is set", func() bool { return h.record("t").Task.Steps == 1 })
	h.restart()
	if snap := h.record("t"); snap.Task.State != swarm.StateRunning || len(snap.Rows) != 1 || snap.Rows[0].NotBefore.IsZero() {
		t.Fatalf("%s, rows %+v", snap.Task.State, snap.Rows)
	}
	h.stop()
	clock.pass(12 * time.Hour)
	h.start()
	r := h.mustPost("go", task("t"), func(p *swarm.Post) { p.Key = "k" })
	if a := h.answer(r); !r.Duplicate || a.Body != "boss got [::timer::] after 10h0m0s" {
		t.Errorf("%+v", a)
	}
	if got := h.agents.turns(); !slices.Equal(got, []string{"boss<-alice:q", "boss<-hive:::timer::"}) {
		t.Errorf("turns %v", got)
	}
}

// The timers of an ended task wait in its stash. Reopened, those whose time has
// come are due at once.
func TestTimersOfAnEndedTask(t *testing.T) {
	t.Parallel()
	var clock later
	h := newHive(t, func(h *hive) { h.opt.Now = clock.now })
	first := true
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if incoming(tn).Payload.Sender.Type == mail.User && first {
			first = false
			tn.SetTimer(24*time.Hour, "day")
			tn.SetTimer(240*time.Hour, "ten days")
			call(tn, mail.ToolTaskComplete, obj{"finish_message": "done"})
			return swarm.Outcome{}
		}
		if incoming(tn).Payload.Sender.Type == mail.User {
			return tell(tn, "seen again")
		}
		return swarm.Outcome{}
	}
	if a := h.ask("go", task("t")); a.Body != "done" {
		t.Fatal(a)
	}
	clock.pass(48 * time.Hour)
	if a := h.ask("again", task("t")); a.Body != "seen again" {
		t.Errorf("%+v", a)
	}
	if got := h.agents.turns(); !slices.Equal(got, []string{"boss<-alice:q", "boss<-hive:::timer::", "boss<-alice:q"}) {
		t.Errorf("turns %v", got)
	}
	if rows := h.record("t").Rows; len(rows) != 1 || rows[0].Message.Payload.Body != "ten days" {
		t.Errorf("rows %+v", rows)
	}
}

// Timers are cancelled while they wait, by the agent that set them. A task whose
// last timer is cancelled has stalled.
func TestTimerCancel(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	ids, told := []string{""}, []string(nil)
	say := func(fault *abi.Error) {
		told = append(told, fmt.Sprint(fault))
	}
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		switch p := incoming(tn).Payload; {
		case p.Sender.Type == mail.User:
			for _, d := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour} {
				id, fault := tn.SetTimer(d, d.String())
				ids = append(ids, id)
				say(fault)
			}
			say(tn.CancelTimer(ids[3]))
			say(tn.CancelTimer(ids[3]))
			call(tn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "x"})
		case p.Sender.Type == mail.Agent:
			ids[0], _ = tn.SetTimer(time.Millisecond, "")
		case p.Subject == mail.SubjectTimer:
			say(tn.CancelTimer(ids[0])) // this very one
			say(tn.CancelTimer(ids[1]))
			say(tn.CancelTimer(ids[1]))
			say(tn.CancelTimer(ids[2]))
			told = append(told, call(tn, mail.ToolAwaitMessage, obj{}))
		}
		return swarm.Outcome{}
	}
	h.agents.by["math"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		say(tn.CancelTimer(ids[1]))
		call(tn, mail.ToolSendResponse, obj{"target": "boss", "subject": "s", "body": "x"})
		return swarm.Outcome{}
	}
	a := h.ask("go", task("t"))
	if a.Subject != mail.SubjectRuntimeError || !strings.HasPrefix(a.Body, "stalled") {
		t.Errorf("%+v", a)
	}
	none := func(agent string, n int) string {
		return fmt.Sprintf("NOT_FOUND: agent %q has no timer %q pending in this task", agent, ids[n])
	}
	want := []string{
		"<nil>", "<nil>", "<nil>", "<nil>", none("boss", 3), none("math", 1),
		none("boss", 0), "<nil>", none("boss", 1), "<nil>", "ERROR CONFLICT: no outstanding requests and message queue is empty",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q\nwant %q", told, want)
	}
	if rows := h.record("t").Rows; len(rows) != 0 {
		t.Errorf("rows %+v", rows)
	}
}

// Timers have bounds, of each and of all that a task has.
func TestTimerBounds(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	var told []string
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		set := func(after time.Duration, body string) (id string) {
			id, fault := tn.SetTimer(after, body)
			if fault != nil {
				told = append(told, fault.Error())
			}
			return id
		}
		if incoming(tn).Payload.Sender.Type == mail.User {
			set(0, "")
			set(swarm.MaxTimer+1, "")
			set(time.Hour, strings.Repeat("x", swarm.MaxBody+1))
			for range swarm.MaxTimers - 1 {
				set(swarm.MaxTimer, "")
			}
			set(swarm.MinTimer, "")
			set(time.Hour, "")
			return swarm.Outcome{}
		}
		id := set(time.Hour, "")
		set(time.Hour, "")
		_ = tn.CancelTimer(id)
		set(time.Hour, "")
		call(tn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		return swarm.Outcome{}
	}
	h.ask("go", task("t"))
	full := "LIMIT: the task has 16 timers pending, its limit; cancel one first"
	want := []string{
		"INVALID: after is 0s; it must be from 1 ms to 30 days", "INVALID: after is 720h0m0.000000001s; it must be from 1 ms to 30 days",
		"LIMIT: body has 262145 bytes, at most 262144", full, full,
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	if rows := h.record("t").Rows; len(rows) != swarm.MaxTimers {
		t.Errorf("%d rows", len(rows))
	}
}

// A turn that fails sets no timer and cancels none.
func TestTimerOfADiscardedTurn(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	var id string
	h.agents.by["boss"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		switch {
		case incoming(tn).Payload.Sender.Type == mail.System:
			return script(ctx, tn)
		case id == "":
			id, _ = tn.SetTimer(time.Hour, "first")
			return swarm.Outcome{}
		}
		_ = tn.CancelTimer(id)
		_, _ = tn.SetTimer(time.Millisecond, "second")
		return failed(fmt.Errorf("on purpose"))
	}
	r := h.mustPost("go", task("t"))
	eventually(t, "the timer is set", func() bool { return h.record("t").Task.Steps == 1 })
	if a := h.ask("fail", task("t")); a.Subject != mail.SubjectAgentError || h.answer(r).Subject != a.Subject {
		t.Errorf("%+v", a)
	}
	if rows := h.record("t").Rows; len(rows) != 1 || rows[0].Message.Payload.Body != "first" || !rows[0].Stash {
		t.Errorf("rows %+v", rows)
	}
}

// A task has one wakeup: it serves a timer and is set again for the deadline.
func TestTimerAndDeadline(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if incoming(tn).Payload.Sender.Type == mail.User {
			tn.SetTimer(time.Millisecond, "soon")
			tn.SetTimer(time.Hour, "late")
		}
		return swarm.Outcome{}
	}
	a := h.ask("go", task("t"), func(p *swarm.Post) { p.Timeout = 300 * time.Millisecond })
	if a.State != swarm.StateTimedOut {
		t.Errorf("%+v", a)
	}
	if got := h.agents.turns(); len(got) != 2 {
		t.Errorf("turns %v", got)
	}
}

// At the message limit timers go to the stash with all that waits, and the grace
// turn can count on none.
func TestTimerAtTheLimit(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	var told string
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if incoming(tn).Payload.Sender.Type == mail.User {
			tn.SetTimer(time.Millisecond, "soon")
			tn.SetTimer(time.Hour, "late")
			return swarm.Outcome{}
		}
		if incoming(tn).Payload.Subject != mail.SubjectMaximumStepsReached {
			return swarm.Outcome{}
		}
		tn.SetTimer(time.Hour, "grace")
		told = call(tn, mail.ToolAwaitMessage, obj{})
		return swarm.Outcome{}
	}
	a := h.ask("go", task("t"), func(p *swarm.Post) { p.MaxSteps = 1 })
	if a.State != swarm.StateFailed || !strings.Contains(a.Body, "limit of 1 messages") || !strings.HasPrefix(told, "ERROR CONFLICT") {
		t.Errorf("%+v, %s", a, told)
	}
	rows := h.record("t").Rows
	if rows = slices.DeleteFunc(rows, func(r swarm.Row) bool { return r.NotBefore.IsZero() }); len(rows) != 3 {
		t.Errorf("%d timers", len(rows))
	}
}

// A timer that comes does not take the place of the task's deadline: a turn that it began,
// and that does not end, is ended by it.
func TestDeadlineAfterATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun sync.WaitGroup
		h := newHive(t, func(h *hive) {
			h.def.Limits.TaskTimeout = 2 * time.Hour
			h.def.Agents[0].Limits.Wall = 3 * time.Hour
		})
		blocked := blocks(&begun)
		h.agents.by["boss"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
			if incoming(tn).Payload.Subject == mail.SubjectTimer {
				return blocked(ctx, tn)
			}
			return sets(time.Hour)(ctx, tn)
		}
		begun.Add(1)
		h.mustPost("go", task("t"))
		begun.Wait()
		time.Sleep(time.Hour + time.Minute)
		if state := h.record("t").Task.State; state != swarm.StateTimedOut {
			t.Errorf("a minute after its deadline the task is %s", state)
		}
	})
}
