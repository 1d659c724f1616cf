package mailtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// TestRequestResponse: an agent asks another, waits, gets the answer and
// completes; the response names the request it answers (R-001, R-005, R-006, S-02,
// S-10, S-13, G-05, G-19).
func TestRequestResponse(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	got := w.ask(obj{"task_id": "t", "body": script(
		"send_request", obj{"target": "math", "subject": "s", "body": "hello"}, "await_message", obj{"reason": "math"})})
	if got != "boss got [Re: s] echo: hello" {
		t.Errorf("answer %q", got)
	}
	rec := w.record("t")
	want := []string{"user>boss:New Message", "boss>math:s", "math>boss:Re: s", "boss>all:::task_complete::"}
	if diff := cmp.Diff(want, rec.flow(t)); diff != "" {
		t.Errorf("mail (-want +got)\n%s", diff)
	}
	all := rec.mail(t)
	if all[1].Type != mail.Request || all[2].Type != mail.Response || all[1].Payload.ID != all[2].Payload.ID {
		t.Errorf("request %q, answered %q", all[1].Payload.ID, all[2].Payload.ID)
	}
	wantResults := []string{"SUCCESS: message sent", "SUCCESS: waiting for a new message (reason: 'math')", "SUCCESS: task completed"}
	if diff := cmp.Diff(wantResults, w.results("t", "boss")); diff != "" {
		t.Errorf("results (-want +got)\n%s", diff)
	}
}

// TestLocalAddresses: a bare name and one with the own swarm's name lead to the
// same local agent, whichever of the two comm_targets lists (R-013, R-038, G-13).
func TestLocalAddresses(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	for _, to := range []string{"text", "text@hive"} {
		task := "to-" + to
		w.ask(obj{"task_id": task, "body": script("send_request", obj{"target": "math@hive", "subject": "a",
			"body": script("send_request", obj{"target": to, "subject": "b", "body": "[]"})})})
		want := []string{"user>boss:New Message", "boss>math:a", "math>text:b"}
		if diff := cmp.Diff(want, w.record(task).flow(t)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", to, diff)
		}
	}
}

// TestBroadcast: a broadcast to all, or to none by name, reaches every agent but
// its sender, each once; one with names reaches just these. The task goes on until
// each of them has had its turn (R-007, S-05, S-11, G-44).
func TestBroadcast(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	others := []string{"boss>desk:b", "boss>math:b", "boss>text:b", "boss>vice:b"}
	for i, c := range []struct {
		args obj
		want []string
	}{
		{obj{}, others},
		{obj{"targets": []string{"all"}}, others},
		{obj{"targets": []string{"desk", "text", "desk"}}, []string{"boss>desk:b", "boss>text:b"}},
	} {
		task := fmt.Sprint("t", i)
		c.args["subject"], c.args["body"] = "b", "news"
		w.ask(obj{"task_id": task, "body": script("send_broadcast", c.args)})
		got := slices.DeleteFunc(w.record(task).flow(t), func(line string) bool { return !strings.HasSuffix(line, ":b") })
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got)\n%s", c.args, diff)
		}
		for _, line := range got {
			agent := strings.TrimSuffix(strings.TrimPrefix(line, "boss>"), ":b")
			if diff := cmp.Diff([]string{"b", mail.SubjectRuntimeError}, w.taken(task, agent)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", agent, diff)
			}
		}
	}
}

// TestBroadcastMemory: what an agent acknowledges it can read in its memory later,
// with its note; what it ignores it cannot; neither answers (S-12, G-16).
func TestBroadcastMemory(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	tell := func(to, body string) []any {
		return []any{"send_broadcast", obj{"subject": "news", "body": body, "targets": []string{to}}}
	}
	w.ask(obj{"task_id": "t", "body": script(append(
		tell("math", script("acknowledge_broadcast", obj{"note": "kept-note"}, "log", obj{"message": "kept-word"})),
		tell("text", script("ignore_broadcast", obj{"reason": "dull"}, "log", obj{"message": "lost-word"}))...)...)})
	before := len(w.record("t").mail(t))
	if before != 3 {
		t.Errorf("%d messages, want the post and two broadcasts", before)
	}
	recall := func(agent string) string {
		return w.ask(obj{"task_id": "t", "body": script("send_request", obj{"target": agent, "subject": "recall", "body": script(
			"history", obj{"after": 0, "limit": 50}, "send_response", obj{"target": "boss", "subject": "memory", "body": "{{0}}"})})})
	}
	if got := recall("math"); !strings.HasPrefix(got, "boss got [memory]") || !strings.Contains(got, "kept-word") || !strings.Contains(got, "kept-note") {
		t.Errorf("math acknowledged and remembers %s", got)
	}
	if got := recall("text"); !strings.HasPrefix(got, "boss got [memory]") || strings.Contains(got, "lost-word") {
		t.Errorf("text ignored and remembers %s", got)
	}
	if !slices.Contains(w.record("t").names(), "broadcast_ignored") {
		t.Error("no event tells of the broadcast that was ignored")
	}
}

// TestTiers: what waits for one agent is taken by tier, and within a tier in the
// order in which it was sent (R-008, S-03, S-04).
func TestTiers(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	to := func(subject string) obj { return obj{"target": "math", "subject": subject, "body": "[]"} }
	w.ask(obj{"task_id": "t", "body": script("send_request", to("r1"), "send_response", to("r2"), "send_request", to("r3"),
		"send_broadcast", obj{"subject": "b1", "body": "[]", "targets": []string{"math"}},
		"send_broadcast", obj{"subject": "b2", "body": "[]", "targets": []string{"math"}},
		"send_interrupt", to("i1"), "send_interrupt", to("i2"))})
	want := []string{"i1", "i2", "b1", "b2", "r1", "r2", "r3", mail.SubjectRuntimeError}
	if diff := cmp.Diff(want, w.taken("t", "math")); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
}

// TestSystemGoesFirst: mail of the system goes before mail of users and admins,
// though it came later (S-03, G-10, R-010).
func TestSystemGoesFirst(t *testing.T) {
	t.Parallel()
	for _, token := range []string{alice, ada} {
		w := newWorld(t, "", oneTurn)
		release := w.holdAs(token)
		w.acceptAs(token, obj{"task_id": "t", "subject": "first", "body": script("send_request", obj{"target": "desk", "subject": "s", "body": "b"})})
		w.acceptAs(token, obj{"task_id": "t", "subject": "second", "body": "two"})
		release()
		w.eventually("the task ends", func() bool { return !w.recordAs(token, "t").Running })
		var calls []string
		for _, m := range w.recordAs(token, "t").mail(t) {
			if m.Type == mail.BroadcastComplete {
				calls = append(calls, m.Payload.Body[:len("boss got [xxx")])
			}
		}
		if diff := cmp.Diff([]string{"boss got [::i", "boss got [sec"}, calls); diff != "" {
			t.Errorf("completions (-want +got)\n%s", diff)
		}
	}
}

// TestInterruptQueues: an interrupt does not stop the turn its recipient has under
// way; that is for interrupt_mode = "preempt", where it is the next turn (R-008,
// S-03).
func TestInterruptQueues(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"queue", "preempt"} {
		w := newWorld(t, "interrupt_mode = \""+mode+"\"\n", "")
		ms := 6e5
		if mode == "queue" {
			ms = 300
		}
		w.accept(obj{"task_id": "t", "subject": "long", "body": script("sleep", obj{"ms": ms}, "task_complete", obj{"finish_message": "slept"})})
		// Sent again until one has found the turn at work.
		w.eventually("the task ends", func() bool {
			w.accept(obj{"task_id": "t", "msg_type": "interrupt", "subject": "stop", "body": "[]"})
			return slices.Contains(w.taken("t", "boss"), "long")
		})
		rec := w.record("t")
		slept := slices.ContainsFunc(rec.mail(t), func(m mail.Message) bool { return m.Payload.Body == "slept" })
		if want := mode == "queue"; slept != want {
			t.Errorf("%s: the turn came to its end: %v, want %v", mode, slept, want)
		}
	}
}
