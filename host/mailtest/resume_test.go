package mailtest_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// TestMultiTurn: a post to a task that has ended goes on with it and its
// histories, whether or not it says resume_from (R-023 to, G-01,
// G-33).
func TestMultiTurn(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	for name, more := range map[string]obj{"plain": {}, "user_response": {"resume_from": "user_response"}, "null": {"resume_from": nil}} {
		if got := w.ask(obj{"task_id": name, "subject": "one", "body": "1"}); got != "boss got [one] 1" {
			t.Errorf("%s: answer %q", name, got)
		}
		more["task_id"], more["subject"], more["body"] = name, "two", "2"
		if got := w.ask(more); got != "boss got [two] 2" {
			t.Errorf("%s: second answer %q", name, got)
		}
		want := []string{"one", mail.SubjectTaskComplete, "two", mail.SubjectTaskComplete}
		if diff := cmp.Diff(want, w.taken(name, "boss")); diff != "" {
			t.Errorf("%s: history (-want +got)\n%s", name, diff)
		}
	}
	for _, c := range []struct {
		fields obj
		status int
	}{
		{obj{"task_id": "plain", "body": "x", "resume_from": "yesterday"}, http.StatusBadRequest},
		{obj{"body": "x", "resume_from": "user_response"}, http.StatusBadRequest},
		{obj{"task_id": "unknown", "body": "x", "resume_from": "user_response"}, http.StatusNotFound},
	} {
		if r := w.post(c.fields); r.status != c.status {
			t.Errorf("%v: %d %s, want %d", c.fields, r.status, r.body, c.status)
		}
	}
}

// TestTwoPosts: posts that meet on one running task are handled in the order in
// which they came, and each caller gets the completion of its own (R-022, R-025,
// R-026, S-04, G-30).
func TestTwoPosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", oneTurn)
	release := w.hold()
	var wg sync.WaitGroup
	answers := make([]string, 3)
	for i, subject := range []string{"one", "two", "three"} {
		wg.Go(func() { answers[i] = w.ask(obj{"task_id": "t", "subject": subject, "body": "b"}) })
		w.eventually("the post waits", func() bool {
			r := w.do(w.token, http.MethodGet, "/skep/v1/tasks/t", "")
			return strings.Contains(r.body, `"waiting":`+string(rune('1'+i)))
		})
	}
	release()
	wg.Wait()
	want := []string{"boss got [one] b", "boss got [two] b", "boss got [three] b"}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("answers (-want +got)\n%s", diff)
	}
	if got := w.record("t"); got.State != "completed" || len(got.Queue) != 0 {
		t.Errorf("the task is %s with %d messages", got.State, len(got.Queue))
	}
}

// stashOf leaves four messages for math in the stash of a task: the turn that
// sends them completes it.
func stashOf(w *world, task string) {
	to := func(subject string) obj { return obj{"target": "math", "subject": subject, "body": "[]"} }
	got := w.ask(obj{"task_id": task, "body": script("send_request", to("r1"), "send_request", to("r2"),
		"send_broadcast", obj{"subject": "b", "body": "[]", "targets": []string{"math"}},
		"send_interrupt", to("i"), "task_complete", obj{"finish_message": "first"})})
	if got != "first" {
		w.t.Errorf("answer %q", got)
	}
}

// TestStash: what waits when a task ends is kept once, and comes back in its old
// order before what is new (R-025, S-04, G-32).
func TestStash(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	stashOf(w, "t")
	order := []string{"i", "b", "r1", "r2"}
	if diff := cmp.Diff(order, w.record("t").stash(t)); diff != "" {
		t.Errorf("stash (-want +got)\n%s", diff)
	}
	// A second end in between must not lose or double it.
	if got := w.ask(obj{"task_id": "t", "subject": "again", "body": script(
		"send_request", obj{"target": "math", "subject": "r3", "body": "[]"}, "await_message", obj{})}); !strings.HasPrefix(got, "stalled") {
		t.Errorf("answer %q", got)
	}
	want := append([]string{mail.SubjectTaskComplete}, append(slices.Clone(order), "r3", mail.SubjectRuntimeError)...)
	if diff := cmp.Diff(want, w.taken("t", "math")); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
	if got := w.record("t").Queue; len(got) != 0 {
		t.Errorf("stash left: %q", got)
	}
}
