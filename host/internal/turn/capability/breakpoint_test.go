package capability

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// shop is an agent that asks a person twice, between effects, and then sells.
func shop(v *visit) {
	m, err := mail.ParseMessage(v.in.Message)
	if err != nil {
		panic(err)
	}
	switch {
	case v.in.Agent.Address == "math":
		v.mail(mail.ToolSendResponse, obj{"target": "boss", "subject": "s", "body": "math is here"})
	case m.Payload.Sender.Type == mail.User && m.Payload.Body == "go":
		v.mail(mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "x"})
		one := v.call(abi.OpHTTPFetch, "one")
		yes := v.call(abi.OpAction, `{"name":"confirm","args":{"sum":7}}`)
		two := v.call(abi.OpHTTPFetch, "two")
		v.mail(mail.ToolTaskComplete, obj{"finish_message": strings.Join([]string{one, yes, two}, "; ")})
	default:
		v.mail(mail.ToolTaskComplete, obj{"finish_message": "then " + m.Payload.Subject + " " + m.Payload.Body})
	}
}

// pair submits two questions and an effect, and waits for all of them.
func pair(v *visit) {
	var list []interface{ Close() }
	ask := func(op abi.Op, req string) func() string {
		a, fault := v.t.Ops.Submit(v.ctx, op, []byte(req))
		if fault != nil {
			return func() string { return fault.Error() }
		}
		list = append(list, a)
		return func() string {
			buf := make([]byte, 999)
			n, fault := a.Read(v.ctx, buf)
			if fault != nil {
				return fault.Error()
			}
			return string(buf[:n])
		}
	}
	a := ask(abi.OpAction, `{"name":"confirm","args":{"n":1}}`)
	fetch := ask(abi.OpHTTPFetch, "one")
	b := ask(abi.OpMail, `{"tool":"help","args":{"n":2}}`)
	v.mail(mail.ToolTaskComplete, obj{"finish_message": a() + "; " + b() + "; " + fetch()})
	for _, one := range list {
		one.Close()
	}
}

func newShop(t *testing.T, turn func(*visit)) *host {
	h := newHost(t)
	h.modules = map[string]Module{"boss": guest{"m1", turn}, "math": guest{"m1", turn}}
	h.change = func(def *swarm.Definition) {
		def.Human = []abi.Tool{{Name: "confirm", Description: "Ask a person.", Parameters: json.RawMessage(`{"type":"object"}`)}}
		def.BreakpointTools = []string{"help"}
		def.Agents[0].Actions = []string{"confirm"}
	}
	return h
}

// resume answers the pending calls.
func (h *host) resume(r swarm.Results) (swarm.Answer, error) {
	p := h.post()
	p.Key, p.Body, p.Results, p.MustExist = "", "", &r, true
	return h.send(p)
}

func one(text string) swarm.Results { return swarm.Results{One: &text} }

func (h *host) restart() {
	h.stop()
	h.start(0, false)
}

// A turn that asks a person is suspended, and goes on from there when the
// answer comes, also after a restart: nothing is sent twice.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		h := newShop(t, shop)
		h.start(0, false)
		a, err := h.ask()
		want := `[{"arguments":"{\"sum\":7}","call_id":"t1.c3","name":"confirm","type":"function_call","id":"fc_t1.c3","status":"completed"}]`
		if err != nil || a.State != swarm.StatePaused || a.Subject != mail.SubjectBreakpointToolCall || a.Body != want {
			t.Fatalf("%+v, %v", a, err)
		}
		if restart {
			h.restart()
		}
		a, err = h.resume(one("yes, do"))
		if want := `answer to one under `; err != nil || a.State != swarm.StateCompleted || !strings.HasPrefix(a.Body, want) ||
			!strings.Contains(a.Body, `; {"text":"yes, do"}; answer to two under `) {
			t.Errorf("restart %v: %+v, %v", restart, a, err)
		}
		if h.world.count() != 2 {
			t.Errorf("restart %v: %d effects", restart, h.world.count())
		}
		h.checkPaused(t)
		h.stop()
	}
}

// checkPaused looks at what is left of a task that was paused once.
func (h *host) checkPaused(t *testing.T) {
	t.Helper()
	var lines []string
	for _, line := range h.story() {
		if strings.HasPrefix(line, "boss ") && (strings.Contains(line, `"kind":"call"`) || strings.Contains(line, `"kind":"result"`)) && strings.Contains(line, "t1.c3") {
			lines = append(lines, line[strings.Index(line, `"kind"`):])
		}
		if !strings.Contains(line, " ") {
			lines = append(lines, line)
		}
	}
	want := []string{
		`"kind":"call","call":{"id":"t1.c3","name":"confirm","args":{"sum":7}}}`,
		`"kind":"result","result":{"id":"t1.c3","ok":true,"text":"yes, do"}}`,
		"new_message", "breakpoint_tool_call", "task_complete", "breakpoint_action_complete",
		"tool_call", "new_message", "tool_call", "task_complete_call", "new_message", "task_complete",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil || rec.End == nil || rec.End.Exit != exitOK {
		t.Errorf("%+v, %v", rec.End, err)
	}
	snap, err := h.rt.Task(context.Background(), h.key())
	if err != nil || len(snap.Task.Breakpoints) != 0 || len(snap.Task.Metered) != 0 {
		t.Errorf("%+v, %v", snap.Task, err)
	}
}

// Several questions at once: a turn is suspended when it waits for nothing else,
// and every one gets its answer by its id; one that is missing gets an error.
func TestSeveralQuestions(t *testing.T) {
	t.Parallel()
	h := newShop(t, pair)
	h.start(0, false)
	defer func() { h.stop() }()
	a, err := h.ask()
	var calls []struct {
		ID   string `json:"call_id"`
		Name string `json:"name"`
	}
	if err != nil || json.Unmarshal([]byte(a.Body), &calls) != nil || len(calls) != 2 || calls[0].ID != "t1.c1" || calls[1].Name != "help" {
		t.Fatalf("%+v, %v", a, err)
	}
	if h.world.count() != 1 {
		t.Error("the effect beside the questions was not finished")
	}
	for name, r := range map[string]swarm.Results{
		"one for two":   one("x"),
		"unknown agent": {Caller: "math", Each: []swarm.CallResult{{Call: "t1.c1", Content: "x"}}},
		"unknown call":  {Each: []swarm.CallResult{{Call: "t9.c9", Content: "x"}}},
		"too large":     {Each: []swarm.CallResult{{Call: "t1.c1", Content: strings.Repeat("x", swarm.MaxBreakpointBytes+1)}}},
	} {
		if _, err := h.resume(r); !errors.Is(err, swarm.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.restart()
	a, err = h.resume(swarm.Results{Caller: "boss", Each: []swarm.CallResult{{Call: "t1.c3", Content: "second"}, {Call: "t8.c8", Content: "?"}}})
	if want := `UNAVAILABLE: the task was resumed without a result of this call; {"text":"second"}; answer to one`; err != nil || !strings.HasPrefix(a.Body, want) {
		t.Errorf("%+v, %v", a, err)
	}
	if h.world.count() != 1 {
		t.Errorf("%d effects", h.world.count())
	}
	if _, err := h.resume(one("late")); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("a task that does not wait: %v", err)
	}
}

// A user's message instead of an answer cancels the breakpoint: the turn ends, then the
// message is delivered.
func TestWriteInsteadOfAnswering(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(v *visit) {
		if m, _ := mail.ParseMessage(v.in.Message); m.Payload.Body == "go" {
			v.output, _ = json.Marshal(abi.TurnResult{Notes: []string{v.call(abi.OpAction, `{"name":"confirm","args":{}}`)}})
			return
		}
		shop(v)
	})
	h.start(0, false)
	defer func() { h.stop() }()
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatalf("%+v, %v", a, err)
	}
	h.restart()
	p := h.post()
	p.Key, p.Body, p.MustExist = "", "more", true
	if a, err := h.send(p); err != nil || a.Body != "then q more" {
		t.Errorf("%+v, %v", a, err)
	}
	story := strings.Join(h.story(), "\n")
	cancelled, more := strings.Index(story, "CANCELLED: the user has written"), strings.Index(story, `\"more\"`)
	if more < 0 {
		more = strings.Index(story, `"more"`)
	}
	if cancelled < 0 || more < cancelled {
		t.Errorf("the turn did not end first:\n%s", story)
	}
}

// A suspended turn whose module is gone, or does not repeat itself, begins anew, in
// MAIL's own form.
func TestRebase(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Module{"gone": guest{"m2", shop}, "a process": restless{guest{"m1", shop}}} {
		t.Run(name, func(t *testing.T) { t.Parallel(); rebase(t, m) })
	}
}

// restless is a guest that need not do what it did before.
type restless struct{ guest }

func (restless) Repeats() bool { return false }

func rebase(t *testing.T, then Module) {
	h := newShop(t, shop)
	h.start(0, false)
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatalf("%+v, %v", a, err)
	}
	h.stop()
	h.modules["boss"] = then
	h.start(0, false)
	defer func() { h.stop() }()
	a, err := h.resume(one("yes, do"))
	if err != nil || a.Body != "then "+mail.SubjectActionCompleteBcast+" " {
		t.Errorf("%+v, %v", a, err)
	}
	story := strings.Join(h.story(), "\n")
	for _, want := range []string{"\nturn_rebased\n", `"kind":"result","result":{"id":"t1.c3","ok":true,"text":"yes, do"}`} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q in\n%s", want, story)
		}
	}
	if strings.Contains(story, `"subject":"`+mail.SubjectActionCompleteBcast) {
		t.Errorf("the broadcast stands in a history:\n%s", story)
	}
}

// A task that is cancelled while it waits ends, and its question with it.
func TestCancelWhilePaused(t *testing.T) {
	t.Parallel()
	h := newShop(t, shop)
	h.start(0, false)
	defer func() { h.stop() }()
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatalf("%+v, %v", a, err)
	}
	if err := h.rt.CancelTask(context.Background(), h.key(), "alice"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.resume(one("yes")); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// Death at every durable write of a task that pauses.
func TestDeathAroundAPause(t *testing.T) {
	t.Parallel()
	for n := int64(2); n <= 9; n++ {
		for _, behind := range []bool{false, true} {
			h := newShop(t, shop)
			h.start(n, behind)
			play := func() (swarm.Answer, error) {
				a, err := h.ask()
				if err != nil {
					return a, err
				}
				p, answer := h.post(), one("yes, do")
				p.Key, p.MustExist, p.Results = "resume", true, &answer
				return h.send(p)
			}
			_, _ = play()
			h.stop()
			h.start(0, false)
			a, err := play()
			if err != nil || a.State != swarm.StateCompleted || !strings.Contains(a.Body, "yes, do") {
				t.Errorf("%d behind %v: %+v, %v", n, behind, a, err)
			}
			for key, sent := range h.world.sent {
				if sent > 2 {
					t.Errorf("%d: %s was sent %d times", n, key, sent)
				}
			}
			h.checkPaused(t)
			h.stop()
		}
	}
}
