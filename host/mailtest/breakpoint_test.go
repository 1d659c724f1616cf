package mailtest_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// askers are a swarm in which people do the action confirm, and answer for help.
const askers = "breakpoint_tools = [\"confirm\", \"help\"]\n"

const confirm = `
[actions.confirm]
source = "human"
description = "Confirms an order."
parameters = { type = "object", properties = { item = { type = "string" } } }
`

// newAskers starts a host whose agents may ask people.
func newAskers(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, askers, mayAsk(hive), confirm)
}

// mayAsk gives the agents of a swarm.toml the action confirm.
func mayAsk(agents string) string {
	return strings.ReplaceAll(agents, "comm_targets", "actions = [\"confirm\"]\ncomm_targets")
}

// pending is one call that waits for a person, as the caller is told.
type pending struct {
	Arguments, Name, Type, ID, Status string
	CallID                            string `json:"call_id"`
}

// waits reads the calls that an answer lists.
func (r reply) waits(t *testing.T) (calls []pending) {
	t.Helper()
	if text := r.response(t); r.subject() != mail.SubjectBreakpointToolCall || json.Unmarshal([]byte(text), &calls) != nil || len(calls) == 0 {
		t.Fatalf("no calls wait: %q %s", r.subject(), r.body)
	}
	return calls
}

func (w *world) resume(task string, result any) reply {
	w.t.Helper()
	return w.post(obj{"task_id": task, "resume_from": "breakpoint_tool_call", "kwargs": obj{"breakpoint_tool_call_result": result}})
}

// TestBreakpoint: a call that a person answers pauses the task and is given to the
// caller; its result, in any of the forms, goes raw to the turn, which goes on
// where it was (R-025, R-026, S-10).
func TestBreakpoint(t *testing.T) {
	t.Parallel()
	w := newAskers(t)
	for form, result := range map[string]func(id string) any{
		"text":   func(string) any { return "yes, {{0}}" },
		"object": func(string) any { return obj{"content": "yes, {{0}}"} },
		"array": func(id string) any {
			return []obj{{"call_id": "other", "content": "no"}, {"call_id": id, "content": "yes, {{0}}"}}
		},
		"as text": func(id string) any { return encode([]obj{{"call_id": id, "content": "yes, {{0}}"}}) },
	} {
		r := w.post(obj{"task_id": form, "body": script("send_request", obj{"target": "math", "subject": "once", "body": "[]"},
			"confirm", obj{"item": "tea"}, "task_complete", obj{"finish_message": "{{1}}"})})
		calls := r.waits(t)
		want := []pending{{`{"item":"tea"}`, "confirm", "function_call", "fc_" + calls[0].CallID, "completed", calls[0].CallID}}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("%s: calls (-want +got)\n%s", form, diff)
		}
		if rec := w.record(form); rec.State != "paused" || rec.Running || !rec.Completed || !slices.Contains(rec.names(), "breakpoint_tool_call") {
			t.Errorf("%s: record %+v", form, rec)
		}
		if got := w.resume(form, result(calls[0].CallID)).response(t); got != "yes, {{0}}" {
			t.Errorf("%s: answer %q", form, got)
		}
		rec := w.record(form)
		if n := strings.Count(strings.Join(rec.flow(t), " "), "boss>math:once"); n != 1 || !slices.Contains(rec.names(), "breakpoint_action_complete") {
			t.Errorf("%s: the request was sent %d times, events %q", form, n, rec.names())
		}
		if got := w.results(form, "boss"); !slices.Contains(got, "yes, {{0}}") {
			t.Errorf("%s: results %q", form, got)
		}
	}
}

// TestBreakpointTwice: a turn may ask again after an answer, and a MAIL tool can be
// one that people answer; a stream brings the calls as well (R-026, S-10, S-17).
func TestBreakpointTwice(t *testing.T) {
	t.Parallel()
	w := newAskers(t)
	body := script("confirm", obj{"item": "a"}, "help", obj{}, "task_complete", obj{"finish_message": "{{0}} and {{1}}"})
	all := events(t, w.post(obj{"task_id": "t", "body": body, "stream": true}).body)
	names := (record{events: all}).names()
	if n := len(names); n < 2 || names[n-1] != "task_complete" || names[n-2] != "breakpoint_tool_call" || !strings.Contains(all[n-1].Data.Response, `"confirm"`) {
		t.Errorf("stream %q", names)
	}
	if calls := w.resume("t", "first").waits(t); calls[0].Name != "help" {
		t.Errorf("the second call is %+v", calls)
	}
	if got := w.resume("t", "second").response(t); got != "first and second" {
		t.Errorf("answer %q", got)
	}
}

// TestBreakpointRefusals: results that fit no pending call are refused before the
// task is touched (R-088, G-33).
func TestBreakpointRefusals(t *testing.T) {
	t.Parallel()
	w := newAskers(t)
	w.post(obj{"task_id": "t", "body": script("confirm", obj{"item": "a"}, "task_complete", obj{"finish_message": "{{0}}"})}).waits(t)
	w.ask(obj{"task_id": "done", "body": "x"})
	for _, bad := range []any{nil, 5, true, obj{}, obj{"content": 5}, []any{"x"}, []obj{{"content": "x"}}, []obj{}, []obj{{"call_id": "unknown", "content": "x"}}} {
		if r := w.resume("t", bad); r.status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", bad, r.status, r.body)
		}
	}
	if r := w.post(obj{"task_id": "t", "resume_from": "breakpoint_tool_call"}); r.status != http.StatusBadRequest {
		t.Errorf("no result: %d %s", r.status, r.body)
	}
	if r := w.post(obj{"task_id": "t", "resume_from": "breakpoint_tool_call",
		"kwargs": obj{"breakpoint_tool_call_result": "x", "breakpoint_tool_caller": "math"}}); r.status != http.StatusBadRequest {
		t.Errorf("another agent's call: %d %s", r.status, r.body)
	}
	if r := w.resume("done", "x"); r.status != http.StatusBadRequest {
		t.Errorf("a task that does not wait: %d %s", r.status, r.body)
	}
	if r := w.resume("unknown", "x"); r.status != http.StatusNotFound {
		t.Errorf("an unknown task: %d %s", r.status, r.body)
	}
	if got := w.resume("t", "at last").response(t); got != "at last" {
		t.Errorf("answer %q", got)
	}
}

// TestBreakpointOfSeveral: two agents wait for people. One result alone does not
// say for which; an array may leave one out, whose call then fails (R-025, S-10).
func TestBreakpointOfSeveral(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorldOf(t, askers, g.granted(mayAsk(hive)), confirm)
	name, args := g.step()
	ask := func(to string) []any {
		return []any{"send_request", obj{"target": to, "subject": "s", "body": script(name, args, "confirm", obj{"item": to},
			"send_response", obj{"target": "boss", "subject": to, "body": "{{1}}"})}}
	}
	told := make(chan reply, 1)
	go func() { told <- w.post(obj{"task_id": "t", "body": script(append(ask("math"), ask("text")...)...)}) }()
	g.await(2) // both turns are under way before one of them asks
	g.open()
	calls := (<-told).waits(t)
	asked := func() (n int) {
		for _, e := range w.record("t").events {
			if e.Name == "breakpoint_tool_call" {
				n++
			}
		}
		return n
	}
	w.eventually("both have asked", func() bool { return asked() == 2 })
	if r := w.resume("t", "x"); r.status != http.StatusBadRequest || !strings.Contains(r.body, "2 breakpoint tool calls") {
		t.Errorf("one result for two calls: %d %s", r.status, r.body)
	}
	first, second := "math", "text"
	if strings.Contains(calls[0].Arguments, second) {
		first, second = second, first
	}
	bodies := w.resume("t", []obj{{"call_id": calls[0].CallID, "content": "yes"}}).response(t)
	w.ask(obj{"task_id": "t", "body": "[]"}) // lets the one that was later be seen as well
	for _, m := range w.record("t").mail(t) {
		bodies += "\n" + m.Payload.Subject + ": " + m.Payload.Body
	}
	for _, want := range []string{first + ": yes", second + ": ERROR UNAVAILABLE"} {
		if !strings.Contains(bodies, want) {
			t.Errorf("mail lacks %q:\n%s", want, bodies)
		}
	}
}

// TestBreakpointOutlivesTheHost: a pause, what it stashed and its result outlive
// any number of starts; the stash comes back in order (R-024, S-04, G-32, G-45).
func TestBreakpointOutlivesTheHost(t *testing.T) {
	t.Parallel()
	w := newAskers(t)
	to := func(subject, body string) obj { return obj{"target": "text", "subject": subject, "body": body} }
	r := w.post(obj{"task_id": "t", "body": script("send_request", to("r1", "[]"),
		"send_request", to("r2", script("send_response", obj{"target": "boss", "subject": "r", "body": "done"})),
		"send_interrupt", to("i", script("confirm", obj{"item": "a"})))})
	calls := r.waits(t)
	w.restart()
	if rec := w.record("t"); rec.State != "paused" || !slices.Equal(rec.stash(t), []string{"i", "r1", "r2"}) {
		t.Errorf("after the start: %s, stash %q", rec.State, rec.stash(t))
	}
	w.restart()
	if got := w.resume("t", []obj{{"call_id": calls[0].CallID, "content": "yes"}}).response(t); got != "boss got [r] done" {
		t.Errorf("answer %q", got)
	}
	want := []string{mail.SubjectBreakpointToolCall, "i", mail.SubjectActionComplete, "r1", "r2", mail.SubjectTaskComplete}
	if diff := cmp.Diff(want, w.taken("t", "text")); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
}

// TestBreakpointLeft: who writes or cancels instead of answering leaves the call
// without a result; the task goes on, or ends, all the same (R-025, R-026, G-01).
func TestBreakpointLeft(t *testing.T) {
	t.Parallel()
	w := newAskers(t)
	body := script("confirm", obj{"item": "a"}, "task_complete", obj{"finish_message": "{{0}}"})
	for name, from := range map[string]any{"said": "user_response", "unsaid": nil} {
		w.post(obj{"task_id": name, "body": body}).waits(t)
		if got := w.ask(obj{"task_id": name, "subject": "other", "body": "x", "resume_from": from}); got != "boss got [other] x" {
			t.Errorf("%s: answer %q", name, got)
		}
		left := slices.ContainsFunc(w.record(name).mail(t), func(m mail.Message) bool { return strings.HasPrefix(m.Payload.Body, "ERROR CANCELLED") })
		if !left {
			t.Errorf("%s: the turn that waited did not go on with an error", name)
		}
	}
	w.post(obj{"task_id": "c", "body": body}).waits(t)
	if r := w.cancel("c"); r.status != http.StatusAccepted || w.record("c").State != "cancelled" {
		t.Errorf("cancel: %d %s", r.status, r.body)
	}
	if r := w.resume("c", "x"); r.status != http.StatusBadRequest {
		t.Errorf("an answer after the end: %d %s", r.status, r.body)
	}
}
