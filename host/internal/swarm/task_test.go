package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// R-022, S-06: the finishing message of a new task is returned; the log has
// the order of contracts' minimal run.
func TestMinimalCompletion(t *testing.T) {
	h := newHive(t)
	a := h.ask("hello", task("t1"))
	if a.Body != "boss got [q] hello" || a.State != swarm.StateCompleted || a.Subject != mail.SubjectTaskComplete || a.Caller != "boss" {
		t.Errorf("answer = %+v", a)
	}
	want := []string{"new_message", "tool_call", "task_complete_call", "new_message", "task_complete"}
	if diff := cmp.Diff(want, names(h.events("t1"))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	snap := h.record("t1")
	//
	if snap.Task.Owner != "user:alice@hive" || !slices.Equal(snap.Task.Contributors, []string{"user:alice@hive"}) {
		t.Errorf("owner %q, contributors %q", snap.Task.Owner, snap.Task.Contributors)
	}
	if len(snap.Rows) != 0 || len(snap.Posts) != 0 {
		t.Errorf("left over: rows %v, posts %v", snap.Rows, snap.Posts)
	}
}

// S-10, S-13: request, await, response, completion; X-14: the response carries
// the request's id.
func TestRequestResponse(t *testing.T) {
	h := newHive(t)
	a := h.ask(`[["send_request",{"target":"math","subject":"s","body":"hello"}],["await_message",{"reason":"an answer"}]]`, task("t"))
	if a.Body != "boss got [Re: s] echo: hello" {
		t.Fatalf("answer = %q", a.Body)
	}
	var req, rsp mail.Message
	for _, e := range h.history("t", "boss") {
		if e.Kind == abi.KindIn {
			m, err := mail.ParseMessage(e.Message)
			if err != nil {
				t.Fatal(err)
			}
			if m.Type == mail.Response {
				rsp = m
			}
		}
	}
	req, err := mail.ParseMessage(h.history("t", "math")[0].Message)
	if err != nil {
		t.Fatal(err)
	}
	if rsp.Payload.ID != req.Payload.ID {
		t.Errorf("response id %s, request id %s", rsp.Payload.ID, req.Payload.ID)
	}
	if got := len(h.record("t").Task.Requests); got != 0 {
		t.Errorf("%d open requests after completion", got)
	}
}

// R-014, G-15: the completion is addressed to all and kept by every agent; no
// turn is run for it.
func TestCompletionReachesEveryHistory(t *testing.T) {
	h := newHive(t)
	h.ask("x", task("t"))
	for _, agent := range []string{"boss", "math", "text"} {
		hist := h.history("t", agent)
		m, err := mail.ParseMessage(hist[len(hist)-1].Message)
		if err != nil {
			t.Fatal(err)
		}
		if m.Type != mail.BroadcastComplete || m.Payload.Recipient().Name != mail.ReservedAll {
			t.Errorf("%s: last entry %+v", agent, m)
		}
	}
	if got := h.agents.turns(); len(got) != 1 {
		t.Errorf("turns = %q", got)
	}
}

// S-05, S-11, X-18: a broadcast reaches exactly its recipients.
func TestBroadcastFanOut(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{`{"subject":"b","body":"x"}`, "math<-boss:b text<-boss:b"},
		{`{"subject":"b","body":"x","targets":["all"]}`, "math<-boss:b text<-boss:b"},
		{`{"subject":"b","body":"x","targets":["text"]}`, "text<-boss:b"},
	} {
		h := newHive(t)
		h.ask(`[["send_broadcast",`+c.args+`]]`, task("t"))
		var got []string
		for _, s := range h.agents.turns() {
			if strings.HasSuffix(s, ":b") {
				got = append(got, s)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s reached %q, want %q", c.args, got, c.want)
		}
	}
}

// S-12: acknowledge keeps the broadcast, ignore does not (G-16).
func TestAcknowledgeAndIgnore(t *testing.T) {
	h := newHive(t)
	h.agents.by["text"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		call(turn, mail.ToolIgnoreBroadcast, obj{"reason": "dull"})
		return swarm.Outcome{}
	}
	h.ask(`[["send_broadcast",{"subject":"b","body":"secret-word"}]]`, task("t"))
	has := func(agent string) bool {
		raw, _ := json.Marshal(h.history("t", agent))
		return strings.Contains(string(raw), "secret-word")
	}
	if !has("math") {
		t.Error("math acknowledged the broadcast but does not have it")
	}
	if has("text") {
		t.Error("text ignored the broadcast but keeps it")
	}
	if !slices.Contains(names(h.events("t")), "broadcast_ignored") {
		t.Error("no broadcast_ignored event")
	}
}

// Refusals: each is an ERROR result at once and a system response in the
// agent's mail (R-037, R-039, R-079, G-76).
func TestRefusedCalls(t *testing.T) {
	for _, c := range []struct{ agent, call, code, subject string }{
		{"math", `["send_request",{"target":"nobody","subject":"s","body":"b"}]`, "DENIED", mail.SubjectInvalidRecipient},
		{"math", `["send_request",{"target":"alice","subject":"s","body":"b"}]`, "INVALID", mail.SubjectImproperResponseToUser},
		{"math", `["send_request",{"target":"boss","subject":"::task_complete::","body":"b"}]`, "INVALID", mail.SubjectToolCallError},
		{"math", `["send_request",{"target":"boss"}]`, "INVALID", mail.SubjectToolCallError},
		{"math", `["task_complete",{"finish_message":"x"}]`, "DENIED", mail.SubjectToolCallError},
		{"math", `["send_broadcast",{"subject":"s","body":"b"}]`, "DENIED", mail.SubjectToolCallError},
		{"math", `["no_such_tool",{}]`, "NOT_FOUND", mail.SubjectToolCallError},
		{"math", `["acknowledge_broadcast",{}]`, "INVALID", mail.SubjectToolCallError},
		{"math", `["ignore_broadcast",{}]`, "INVALID", mail.SubjectToolCallError},
		{"boss", `["send_request",{"target":"x@depot","subject":"s","body":"b"}]`, "UNAVAILABLE", mail.SubjectRouterError},
		{"boss", `["await_message",{}]`, "CONFLICT", mail.SubjectToolCallError},
	} {
		t.Run(c.agent+" "+c.subject, func(t *testing.T) {
			h := newHive(t, func(h *hive) { h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "x@depot") })
			var result atomic.Value
			h.agents.by[c.agent] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				if incoming(turn).Payload.Sender.Type == mail.System || result.Load() != nil {
					return script(ctx, turn)
				}
				var parts [2]json.RawMessage
				var tool string
				_ = json.Unmarshal([]byte(c.call), &parts)
				_ = json.Unmarshal(parts[0], &tool)
				_, fault := turn.CallMailTool(abi.MailRequest{Tool: tool, Args: parts[1]})
				result.Store(fmt.Sprint(fault))
				return swarm.Outcome{}
			}
			body := "x"
			if c.agent != "boss" {
				body = `[["send_request",{"target":"` + c.agent + `","subject":"s","body":"go"}]]`
			}
			h.ask(body, task("t"))
			if got, _ := result.Load().(string); !strings.HasPrefix(got, c.code+": ") {
				t.Errorf("result %q, want code %s", got, c.code)
			}
			want := c.agent + "<-hive:" + c.subject
			if !slices.Contains(h.agents.turns(), want) {
				t.Errorf("turns %q lack %q", h.agents.turns(), want)
			}
		})
	}
}

// After await_message or task_complete every further mail call is a CONFLICT.
func TestTurnIsOver(t *testing.T) {
	h := newHive(t)
	var after string
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		after = call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "b"})
		return swarm.Outcome{}
	}
	if a := h.ask("x"); a.Body != "done" {
		t.Errorf("answer %q", a.Body)
	}
	if !strings.HasPrefix(after, "ERROR CONFLICT: ") {
		t.Errorf("a call after task_complete gave %q", after)
	}
}

// Ends of a task: a turn that fails (design §12).
func TestFailingTurn(t *testing.T) {
	crash := func(context.Context, *swarm.Turn) swarm.Outcome {
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "fuel", Limit: "limits.fuel", Message: "out of fuel"}}
	}
	t.Run("on the user's message the task ends", func(t *testing.T) {
		h := newHive(t)
		h.agents.by["boss"] = crash
		a := h.ask("x", task("t"))
		if a.Subject != mail.SubjectAgentError || a.State != swarm.StateFailed {
			t.Errorf("answer = %+v", a)
		}
		for _, want := range []string{`"boss"`, "fuel", "[agents.boss] limits.fuel"} {
			if !strings.Contains(a.Body, want) {
				t.Errorf("answer %q does not name %s", a.Body, want)
			}
		}
	})
	t.Run("on an agent's message the sender is told", func(t *testing.T) {
		h := newHive(t)
		h.agents.by["math"] = crash
		a := h.ask(`[["send_request",{"target":"math","subject":"s","body":"b"}],["await_message",{}]]`, task("t"))
		if a.State != swarm.StateCompleted || !strings.Contains(a.Body, "boss got [::agent_error::]") {
			t.Errorf("answer = %+v", a)
		}
	})
	t.Run("nothing of the turn is seen", func(t *testing.T) {
		h := newHive(t)
		h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "b"})
			return crash(ctx, turn)
		}
		h.ask("x", task("t"))
		if got := h.agents.turns(); len(got) != 1 {
			t.Errorf("turns = %q", got)
		}
	})
	t.Run("a panic in the host fails the turn alone", func(t *testing.T) {
		h := newHive(t)
		h.agents.by["boss"] = func(context.Context, *swarm.Turn) swarm.Outcome { panic("boom") }
		if a := h.ask("x"); a.Subject != mail.SubjectAgentError {
			t.Errorf("answer = %+v", a)
		}
		delete(h.agents.by, "boss")
		if a := h.ask("y"); a.State != swarm.StateCompleted {
			t.Errorf("the next task: %+v", a)
		}
	})
	t.Run("the limit message has one chance", func(t *testing.T) {
		h := newHive(t, func(h *hive) { h.def.Limits.TaskMessages = 1 })
		h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			if incoming(turn).Payload.Subject == mail.SubjectMaximumStepsReached {
				return crash(ctx, turn)
			}
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "b"})
			return swarm.Outcome{}
		}
		if a := h.ask("x"); a.Subject != mail.SubjectAgentError || a.State != swarm.StateFailed {
			t.Errorf("answer = %+v", a)
		}
	})
}

// The stall rule: a task without a row left ends in the same commit (G-34).
func TestStalledTaskEnds(t *testing.T) {
	h := newHive(t)
	before := commits(h)
	a := h.ask(`[]`, task("t"))
	if a.Subject != mail.SubjectRuntimeError || a.State != swarm.StateFailed || !strings.HasPrefix(a.Body, "stalled") {
		t.Errorf("answer = %+v", a)
	}
	if got := commits(h) - before; got != 2 {
		t.Errorf("%d durable steps, want 2: accept and commit", got)
	}
}

func commits(h *hive) int64 {
	n, _ := h.store.Stats()
	return n
}

// Design §4: a turn without effects makes exactly one Commit.
func TestOneDurableWritePerTurn(t *testing.T) {
	h := newHive(t)
	before := commits(h)
	h.ask(`[["send_request",{"target":"math","subject":"s","body":"b"}],["await_message",{}]]`, task("t"))
	// Accept, then the turns of boss, math and boss.
	if got := commits(h) - before; got != 4 {
		t.Errorf("%d durable steps, want 4", got)
	}
}

// G-60: the message limit is enforced, what it stops is kept in the stash, and
// the entrypoint has one turn to finish.
func TestMessageLimit(t *testing.T) {
	pingpong := func(to string) behave {
		return func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			if incoming(turn).Payload.Sender.Type == mail.System {
				return script(ctx, turn)
			}
			call(turn, mail.ToolSendRequest, obj{"target": to, "subject": "ping", "body": "b"})
			return swarm.Outcome{}
		}
	}
	for _, c := range []struct {
		limit, override, turns int
	}{{6, 0, 6}, {6, 3, 3}} {
		h := newHive(t, func(h *hive) { h.def.Limits.TaskMessages = c.limit })
		h.agents.by["boss"], h.agents.by["math"] = pingpong("math"), pingpong("boss")
		a := h.ask("x", task("t"), func(p *swarm.Post) { p.MaxSteps = c.override })
		if a.State != swarm.StateCompleted || !strings.HasPrefix(a.Body, "boss got [::maximum_steps_reached::]") {
			t.Errorf("answer = %+v", a)
		}
		if !strings.Contains(a.Body, "[ping]") {
			t.Errorf("the limit message has no transcript: %q", a.Body)
		}
		if got := len(h.agents.turns()); got != c.turns+1 {
			t.Errorf("limit %d, override %d: %d turns, want %d and the last", c.limit, c.override, got, c.turns)
		}
		snap := h.record("t")
		if len(snap.Rows) != 1 || !snap.Rows[0].Stash {
			t.Errorf("stash = %+v, want the message the limit stopped", snap.Rows)
		}
	}
	t.Run("an entrypoint that does not finish ends the task", func(t *testing.T) {
		h := newHive(t, func(h *hive) { h.def.Limits.TaskMessages = 2 })
		h.agents.by["math"] = pingpong("boss")
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "ping", "body": "b"})
			return swarm.Outcome{}
		}
		a := h.ask("x")
		if a.Subject != mail.SubjectRuntimeError || !strings.Contains(a.Body, "limit of 2 messages") {
			t.Errorf("answer = %+v", a)
		}
	})
}

// G-37: a task that times out really stops; G-17: agents find it in their mail.
func TestTimeout(t *testing.T) {
	h := newHive(t)
	entered := make(chan struct{}, 1)
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		entered <- struct{}{}
		<-ctx.Done()
		return failed(context.Cause(ctx))
	}
	a := h.ask("x", task("t"), func(p *swarm.Post) { p.Timeout = 50 * time.Millisecond })
	<-entered
	if a.State != swarm.StateTimedOut || a.Subject != mail.SubjectTaskTimeout {
		t.Errorf("answer = %+v", a)
	}
	snap := h.record("t")
	if len(snap.Rows) != 1 || !snap.Rows[0].Stash {
		t.Errorf("the killed turn's input is not in the stash: %+v", snap.Rows)
	}
	if got := names(h.events("t")); got[len(got)-1] != "task_error" {
		t.Errorf("events end with %q", got)
	}
	// A new post reopens the task with its stash.
	delete(h.agents.by, "boss")
	b := h.ask("again", task("t"))
	if b.State != swarm.StateCompleted {
		t.Errorf("reopened: %+v", b)
	}
}

// Limits of a post hold for that post; a later one has the swarm's.
func TestLimitsOfOnePost(t *testing.T) {
	h := newHive(t)
	own := func(p *swarm.Post) { p.Timeout, p.MaxSteps = time.Minute, 5 }
	for _, c := range []struct {
		change  func(*swarm.Post)
		timeout time.Duration
		steps   int
	}{
		{own, time.Minute, 5},
		{func(*swarm.Post) {}, time.Hour, 20},
		{own, time.Minute, 5},
		{func(p *swarm.Post) { p.MaxSteps = 7 }, time.Hour, 7},
	} {
		h.ask("x", task("t"), c.change)
		rec := h.record("t").Task
		if rec.Timeout != c.timeout || rec.MaxSteps != c.steps {
			t.Errorf("timeout %v and max_steps %d, want %v and %d", rec.Timeout, rec.MaxSteps, c.timeout, c.steps)
		}
	}
}

func TestCancel(t *testing.T) {
	h := newHive(t)
	entered := make(chan struct{}, 1)
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		entered <- struct{}{}
		<-ctx.Done()
		return failed(context.Cause(ctx))
	}
	r := h.mustPost("x", task("t"))
	<-entered
	if err := h.rt.CancelTask(context.Background(), key("t"), "user:alice"); err != nil {
		t.Fatal(err)
	}
	if a := h.answer(r); a.State != swarm.StateCancelled || a.Subject != mail.SubjectTaskCancelled {
		t.Errorf("answer = %+v", a)
	}
	if err := h.rt.CancelTask(context.Background(), key("t"), "user:alice"); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("a second cancel: %v", err)
	}
	if err := h.rt.CancelTask(context.Background(), key("none"), "user:alice"); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("an unknown task: %v", err)
	}
}

// G-01: a completed task goes on with its histories.
func TestMultiTurn(t *testing.T) {
	h := newHive(t)
	h.ask("one", task("t"))
	a := h.ask("two", task("t"))
	if a.Body != "boss got [q] two" {
		t.Errorf("answer = %+v", a)
	}
	hist := h.history("t", "boss")
	if len(hist) != 8 {
		t.Errorf("%d history entries, want 8 (twice in, call, result, completion)", len(hist))
	}
	for i, e := range hist {
		if e.Seq != int64(i+1) {
			t.Errorf("entry %d has seq %d", i, e.Seq)
		}
	}
}

// G-30: two posts on one running task both get their answer, and the second
// one's message is not lost by the completion of the first.
func TestTwoPostsOnOneTask(t *testing.T) {
	h := newHive(t)
	gate := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		<-gate
		return script(ctx, turn)
	}
	first := h.mustPost("one", task("t"))
	second := h.mustPost("two", task("t"))
	close(gate)
	if a := h.answer(first); a.Body != "boss got [q] one" {
		t.Errorf("first = %+v", a)
	}
	if a := h.answer(second); a.Body != "boss got [q] two" || a.State != swarm.StateCompleted {
		t.Errorf("second = %+v", a)
	}
}

// S-03, S-04: tiers, then age.
func TestTiers(t *testing.T) {
	h := newHive(t)
	gate, busy := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if once.CompareAndSwap(false, true) {
			close(busy)
			<-gate
		}
		return swarm.Outcome{}
	}
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Subject == "q" {
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "first", "body": ""})
			return swarm.Outcome{}
		}
		<-busy
		for _, s := range []string{"r1", "r2"} {
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": s, "body": ""})
		}
		call(turn, mail.ToolSendBroadcast, obj{"subject": "b", "body": "", "targets": []string{"math"}})
		call(turn, mail.ToolSendInterrupt, obj{"target": "math", "subject": "i", "body": ""})
		return swarm.Outcome{}
	}
	r := h.mustPost("x", task("t"))
	h.mustPost("y", task("t"), func(p *swarm.Post) { p.Subject = "go" })
	eventually(t, "boss has sent", func() bool { return len(h.record("t").Rows) == 5 })
	close(gate)
	h.answer(r)
	var got []string
	for _, s := range h.agents.turns() {
		if name, ok := strings.CutPrefix(s, "math<-boss:"); ok {
			got = append(got, name)
		}
	}
	if diff := cmp.Diff([]string{"first", "i", "b", "r1", "r2"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A post that waits while the limit is reached is not answered by the task's
// first end: its message gets its turn.
func TestPostDuringGrace(t *testing.T) {
	for _, during := range []string{"first turn", "grace turn"} {
		t.Run(during, func(t *testing.T) {
			h := newHive(t, func(h *hive) { h.def.Limits.TaskMessages = 1 })
			entered, gate := make(chan struct{}, 8), make(chan struct{})
			h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				m := incoming(turn)
				if grace := m.Payload.Subject == mail.SubjectMaximumStepsReached; grace == (during == "grace turn") || m.Payload.Body == "one" {
					entered <- struct{}{}
					<-gate
				}
				if m.Payload.Body == "one" {
					call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": ""})
					return swarm.Outcome{}
				}
				return script(ctx, turn)
			}
			first := h.mustPost("one", task("t"))
			<-entered
			if during == "grace turn" {
				gate <- struct{}{}
				<-entered
			}
			second := h.mustPost("two", task("t"))
			close(gate)
			if a := h.answer(first); !strings.HasPrefix(a.Body, "boss got [::maximum_steps_reached::]") {
				t.Errorf("first = %+v", a)
			}
			if a := h.answer(second); a.Body != "boss got [q] two" || a.State != swarm.StateCompleted {
				t.Errorf("second = %+v", a)
			}
		})
	}
}

// A request to finish that was never read does not reach into the next run.
func TestStaleLimitMessage(t *testing.T) {
	h := newHive(t, func(h *hive) {
		h.def.Limits.TaskMessages = 3
		h.def.Agents[1].CanComplete = true
	})
	busy, gate := make(chan struct{}), make(chan struct{})
	h.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		close(busy)
		<-gate
		call(turn, mail.ToolTaskComplete, obj{"finish_message": "math was faster"})
		return swarm.Outcome{}
	}
	block := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		switch m := incoming(turn); {
		case m.Payload.Body == "one":
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": ""})
			call(turn, mail.ToolSendRequest, obj{"target": "text", "subject": "s", "body": ""})
			return swarm.Outcome{}
		case m.Payload.Subject == mail.SubjectMaximumStepsReached:
			<-block
		}
		return script(ctx, turn)
	}
	h.agents.by["text"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		<-busy
		call(turn, mail.ToolSendRequest, obj{"target": "boss", "subject": "one too many", "body": ""})
		return swarm.Outcome{}
	}
	r := h.mustPost("one", task("t"))
	eventually(t, "the limit is reached", func() bool { return h.record("t").Task.Grace })
	close(gate)
	if a := h.answer(r); a.Body != "math was faster" {
		t.Fatalf("answer = %+v", a)
	}
	close(block)
	if a := h.ask("two", task("t")); a.Body != "boss got [q] two" {
		t.Errorf("the next run: %+v", a)
	}
}

// What a killed turn has cost is kept (design §4).
func TestUsageOfKilledTurn(t *testing.T) {
	h := newHive(t)
	entered := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, _ *swarm.Turn) swarm.Outcome {
		close(entered)
		<-ctx.Done()
		return swarm.Outcome{Usage: swarm.Usage{Fuel: 777}, Failure: &swarm.Failure{Cause: "cancelled"}}
	}
	h.mustPost("x", task("t"))
	<-entered
	if err := h.rt.CancelTask(context.Background(), key("t"), "user:alice"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cost is settled", func() bool { return h.record("t").Task.Usage.Fuel == 777 })
}
