package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

func idem(k string) func(*swarm.Post) { return func(p *swarm.Post) { p.Key = k } }

// A repeat under one key attaches to the first submission, before and after
// its answer and after a restart; another body is refused.
func TestIdempotencyKey(t *testing.T) {
	h := newHive(t)
	gate := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		<-gate
		return script(ctx, turn)
	}
	var wg sync.WaitGroup
	answers := make(chan swarm.Answer, 8)
	for range 8 {
		wg.Go(func() { answers <- h.ask("once", idem("k")) })
	}
	eventually(t, "the first is accepted", func() bool { return len(h.agents.turns()) == 1 })
	if _, err := h.post("other", idem("k")); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("another body: %v", err)
	}
	close(gate)
	wg.Wait()
	first := <-answers
	for range 7 {
		if a := <-answers; a != first {
			t.Errorf("answers differ: %+v and %+v", a, first)
		}
	}
	h.restart()
	if a := h.ask("once", idem("k")); a != first {
		t.Errorf("after a restart: %+v, want %+v", a, first)
	}
	if got := h.agents.turns(); len(got) != 1 {
		t.Errorf("turns = %q, want one", got)
	}
}

// An idempotency key is forgotten after a day.
func TestKeysExpire(t *testing.T) {
	h := newHive(t)
	h.ask("one", idem("k"))
	h.stop()
	h.opt.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	h.start()
	eventually(t, "the submission is forgotten", func() bool {
		_, err := h.store.Submission(context.Background(), alice().Instance("hive"), "test", "k")
		return errors.Is(err, swarm.ErrNotFound)
	})
	if a := h.ask("two", idem("k")); a.Body != "boss got [q] two" {
		t.Errorf("answer = %+v", a)
	}
}

func TestRefusedPosts(t *testing.T) {
	h := newHive(t)
	for name, c := range map[string]struct {
		change func(*swarm.Post)
		kind   error
		text   string
	}{
		"unknown swarm":       {func(p *swarm.Post) { p.Swarm = "x" }, swarm.ErrNotFound, "swarm 'x' not found"},
		"unknown tenant":      {func(p *swarm.Post) { p.Principal.Tenant = "x" }, swarm.ErrNotFound, "not found"},
		"unknown entrypoint":  {func(p *swarm.Post) { p.Entrypoint = "x" }, swarm.ErrInvalid, "'x'"},
		"not an entrypoint":   {func(p *swarm.Post) { p.Entrypoint = "math" }, swarm.ErrInvalid, "enable_entrypoint"},
		"bad task id":         {func(p *swarm.Post) { p.Task = "a\nb" }, swarm.ErrInvalid, "task_id"},
		"long task id":        {func(p *swarm.Post) { p.Task = strings.Repeat("x", 257) }, swarm.ErrInvalid, "task_id"},
		"reserved subject":    {func(p *swarm.Post) { p.Subject = "::x::" }, swarm.ErrInvalid, "'::'"},
		"long subject":        {func(p *swarm.Post) { p.Subject = strings.Repeat("x", swarm.MaxSubject+1) }, swarm.ErrInvalid, "subject"},
		"long body":           {func(p *swarm.Post) { p.Body = strings.Repeat("x", swarm.MaxBody+1) }, swarm.ErrInvalid, "body"},
		"resume unknown task": {func(p *swarm.Post) { p.Task, p.MustExist = "x", true }, swarm.ErrNotFound, "task 'x' not found"},
	} {
		_, err := h.post("x", c.change)
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.kind, c.text)
		}
	}
	if tasks, err := h.rt.Tasks(context.Background(), alice().Instance("hive"), time.Time{}, 10); err != nil || len(tasks) != 0 {
		t.Errorf("refused posts left %d tasks, %v", len(tasks), err)
	}
}

// A full instance refuses its own next post, not another instance's.
func TestQueueLimitOfOneInstance(t *testing.T) {
	h := newHive(t, func(h *hive) { h.def.Limits.Queue = 3 })
	gate := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		<-gate
		return script(ctx, turn)
	}
	var receipts []*swarm.Receipt
	for range 3 {
		receipts = append(receipts, h.mustPost("x"))
	}
	if _, err := h.post("x"); !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "[limits] queue") {
		t.Errorf("the fourth: %v", err)
	}
	bob := h.mustPost("x", func(p *swarm.Post) { p.Principal.ID = "bob" })
	close(gate)
	for _, r := range append(receipts, bob) {
		h.answer(r)
	}
	h.ask("room again")
}

func TestInstanceLimit(t *testing.T) {
	h := newHive(t, func(h *hive) { h.def.Limits.Instances = 1 })
	h.ask("x")
	if _, err := h.post("x", func(p *swarm.Post) { p.Principal.ID = "bob" }); !errors.Is(err, swarm.ErrLimit) {
		t.Errorf("a second instance: %v", err)
	}
	h.ask("x")
}

// The operator's limits are a ceiling for users, not for admins.
func TestCallersLimits(t *testing.T) {
	h := newHive(t)
	post := func(id string, role mail.Role) swarm.Task {
		h.ask("x", func(p *swarm.Post) {
			p.Task, p.Principal.Role, p.MaxSteps, p.Timeout = id, role, 1000, 9*time.Hour
		})
		p := alice()
		p.Role = role
		snap, err := h.rt.Task(context.Background(), swarm.TaskKey{InstanceKey: p.Instance("hive"), Task: id})
		if err != nil {
			t.Fatal(err)
		}
		return snap.Task
	}
	if got := post("u", mail.RoleUser); got.MaxSteps != 20 || got.Timeout != time.Hour {
		t.Errorf("a user raised the limits: %d, %v", got.MaxSteps, got.Timeout)
	}
	if got := post("a", mail.RoleAdmin); got.MaxSteps != 1000 || got.Timeout != 9*time.Hour {
		t.Errorf("an admin did not: %d, %v", got.MaxSteps, got.Timeout)
	}
}

// the same task id in two instances is two tasks.
func TestInstancesAreApart(t *testing.T) {
	h := newHive(t)
	h.ask("alice's", task("t"))
	asBob := func(p *swarm.Post) { p.Principal.ID, p.Task = "bob", "t" }
	if a := h.ask("bob's", asBob); a.Body != "boss got [q] bob's" {
		t.Errorf("answer = %+v", a)
	}
	admin := func(p *swarm.Post) { p.Principal.Role, p.Task, p.MustExist = mail.RoleAdmin, "t", true }
	if _, err := h.post("x", admin); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("an admin of the same id sees the user's task: %v", err)
	}
	if got := len(h.history("t", "boss")); got != 4 {
		t.Errorf("alice's history has %d entries, want 4", got)
	}
}

// Nothing accepted is lost: a host that stops in mid-turn runs it again.
func TestRestartResumes(t *testing.T) {
	h := newHive(t)
	entered := make(chan struct{}, 1)
	h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		entered <- struct{}{}
		<-ctx.Done()
		return failed(context.Cause(ctx))
	}
	r := h.mustPost(`[["send_request",{"target":"math","subject":"s","body":"b"}],["await_message",{}]]`, task("t"), idem("k"))
	<-entered
	waited := make(chan error, 1)
	go func() {
		_, err := h.rt.Wait(context.Background(), r)
		waited <- err
	}()
	feed, err := h.rt.Follow(t.Context(), key("t"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	events, err := feed.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.stop()
	if err := <-waited; !errors.Is(err, swarm.ErrDraining) {
		t.Errorf("a waiter at shutdown: %v", err)
	}
	if _, err := h.post("x"); !errors.Is(err, swarm.ErrDraining) {
		t.Errorf("a post at shutdown: %v", err)
	}
	if _, err := feed.Next(t.Context()); !errors.Is(err, swarm.ErrDraining) {
		t.Errorf("a reader at shutdown: %v", err)
	}
	if _, err := h.rt.Follow(t.Context(), key("t"), events[len(events)-1].Seq); !errors.Is(err, swarm.ErrDraining) {
		t.Errorf("a reader after shutdown: %v", err)
	}
	delete(h.agents.by, "math")
	h.start()
	a := h.ask(`[["send_request",{"target":"math","subject":"s","body":"b"}],["await_message",{}]]`, idem("k"))
	if a.Body != "boss got [Re: s] echo: b" {
		t.Errorf("answer = %+v", a)
	}
	if hist := h.history("t", "math"); len(hist) != 4 {
		t.Errorf("math's history has %d entries, want 4 (in, call, result, completion)", len(hist))
	}
}

// A task that timed out while the host was down ends at the start.
func TestDeadlinePassesWhileDown(t *testing.T) {
	h := newHive(t)
	entered := make(chan struct{}, 1)
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		entered <- struct{}{}
		<-ctx.Done()
		return failed(context.Cause(ctx))
	}
	h.mustPost("x", task("t"), idem("k"), func(p *swarm.Post) { p.Timeout = time.Hour })
	<-entered
	h.stop()
	h.opt.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	h.start()
	eventually(t, "the task times out", func() bool { return h.record("t").Task.State == swarm.StateTimedOut })
}

// A turn that outlasts its wall time is stopped (limits.turn).
func TestTurnTime(t *testing.T) {
	h := newHive(t, func(h *hive) { h.def.Agents[0].Limits.Wall = 20 * time.Millisecond })
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		<-ctx.Done()
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "deadline", Limit: "limits.turn", Message: context.Cause(ctx).Error()}}
	}
	if a := h.ask("x"); !strings.Contains(a.Body, "limits.turn") {
		t.Errorf("answer = %+v", a)
	}
}

// A feed resumes from any position without gap or repeat, and follows a task
// that is reopened.
func TestFeedResumes(t *testing.T) {
	h := newHive(t)
	h.ask(`[["send_request",{"target":"math","subject":"s","body":"b"}],["await_message",{}]]`, task("t"))
	all := h.events("t")
	for cut := range all {
		feed, err := h.rt.Follow(context.Background(), key("t"), int64(cut))
		if err != nil {
			t.Fatal(err)
		}
		rest, err := feed.Next(context.Background())
		feed.Close()
		if err != nil || len(rest) != len(all)-cut || rest[0].Seq != int64(cut+1) {
			t.Errorf("from %d: %d events from %d, %v", cut, len(rest), rest[0].Seq, err)
		}
	}
	if _, err := h.rt.Follow(context.Background(), key("t"), 999); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("beyond the log: %v", err)
	}
	if _, err := h.rt.Follow(context.Background(), key("none"), 0); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("an unknown task: %v", err)
	}
}

// Many tasks of many instances at once: every post gets its own answer.
func TestHammer(t *testing.T) {
	h := newHive(t, func(h *hive) { h.opt.Turns = 8; h.def.Limits.Queue = 0 })
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			who := func(p *swarm.Post) { p.Principal.ID = fmt.Sprint("u", c) }
			for i := range 20 {
				body := fmt.Sprintf(`[["send_request",{"target":"math","subject":"s","body":"%d-%d"}],["await_message",{}]]`, c, i)
				want := fmt.Sprintf("boss got [Re: s] echo: %d-%d", c, i)
				if a := h.ask(body, who); a.Body != want {
					t.Errorf("answer %q, want %q", a.Body, want)
				}
			}
		})
	}
	wg.Wait()
	st, err := h.rt.Status(t.Context(), alice().Instance("hive"))
	if err != nil || st.Users != 8 || st.Ready || st.Running {
		t.Errorf("status = %+v", st)
	}
}
