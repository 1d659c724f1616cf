package mailtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// TestStall: a task in which nothing can happen any more ends at once and says so
// to its caller and to every agent (R-079, G-34).
func TestStall(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	r := w.post(obj{"task_id": "t", "body": "[]"})
	if got := r.response(t); r.subject() != mail.SubjectRuntimeError || !strings.HasPrefix(got, "stalled") {
		t.Errorf("%q %q", r.subject(), got)
	}
	if rec := w.record("t"); rec.State != "failed" || !rec.Completed {
		t.Errorf("record %+v", rec)
	}
	w.everyoneKnows("t", mail.SubjectRuntimeError)
}

// everyoneKnows checks that the last message of every agent's history has a
// subject.
func (w *world) everyoneKnows(task, subject string) {
	w.t.Helper()
	for _, agent := range []string{"boss", "math", "text", "vice", "desk"} {
		if got := w.taken(task, agent); len(got) == 0 || got[len(got)-1] != subject {
			w.t.Errorf("task %s: %s knows %q, want %s last", task, agent, got, subject)
		}
	}
}

// TestCompletionIsKnown: every agent keeps the completion, and no turn is run for
// it (R-014, S-11, G-15).
func TestCompletionIsKnown(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	w.ask(obj{"task_id": "t", "body": "x"})
	w.everyoneKnows("t", mail.SubjectTaskComplete)
	if got := w.record("t").names(); !slices.Equal(got, minimalRun) {
		t.Errorf("events %q", got)
	}
}

// TestTimeout: when a task's time is up its turns stop, its caller is answered,
// its agents are told, and it can be taken up again (R-079, G-17, G-37).
func TestTimeout(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	for _, probe := range []string{"sleep", "burn"} {
		r := w.post(obj{"task_id": probe, "body": script(probe, obj{"ms": 6e5}), "kwargs": obj{"timeout": 2}})
		if got := r.response(t); r.subject() != mail.SubjectTaskTimeout || !strings.Contains(got, "timed out") {
			t.Errorf("%s: %q %q", probe, r.subject(), got)
		}
		rec := w.record(probe)
		if names := rec.names(); rec.State != "timed_out" || names[len(names)-1] != "task_error" {
			t.Errorf("%s: %s, events %q", probe, rec.State, names)
		}
		if diff := cmp.Diff([]string{"New Message"}, rec.stash(t)); diff != "" {
			t.Errorf("%s: stash (-want +got)\n%s", probe, diff)
		}
		w.everyoneKnows(probe, mail.SubjectTaskTimeout)
		w.stopped(probe)
	}
	again := w.post(obj{"task_id": "sleep", "body": "x", "kwargs": obj{"timeout": 0.1}})
	if again.subject() != mail.SubjectTaskTimeout {
		t.Errorf("the stash is taken up first and sleeps again, want a second timeout: %q", again.subject())
	}
}

// TestCancel: the owner of a task ends it, and no other caller (R-053, R-079, G-37).
func TestCancel(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	told := make(chan reply, 1)
	go func() { told <- w.post(obj{"task_id": "t", "body": script("loop", obj{})}) }()
	w.eventually("the task runs", func() bool {
		return w.do(w.token, http.MethodGet, "/skep/v1/tasks/t", "").status == http.StatusOK
	})
	for token, want := range map[string]int{bob: http.StatusNotFound, ada: http.StatusNotFound} {
		if r := w.cancelAs(token, "t"); r.status != want {
			t.Errorf("another principal: %d %s", r.status, r.body)
		}
	}
	if r := w.cancel("t"); r.status != http.StatusAccepted {
		t.Errorf("cancel: %d %s", r.status, r.body)
	}
	if r := <-told; r.status != http.StatusOK || r.subject() != mail.SubjectTaskCancelled {
		t.Errorf("the caller got %d %q %s", r.status, r.subject(), r.body)
	}
	if r := w.cancel("t"); r.status != http.StatusConflict {
		t.Errorf("a second cancel: %d %s", r.status, r.body)
	}
	if got := w.record("t").State; got != "cancelled" {
		t.Errorf("state %q", got)
	}
	w.everyoneKnows("t", mail.SubjectTaskCancelled)
	w.stopped("t")
}

// stopped waits until the only turn of a task that ended under it is over: its
// cost is settled then.
func (w *world) stopped(task string) {
	w.t.Helper()
	w.eventually("the turn of task "+task+" stops", func() bool {
		var summary struct{ Usage struct{ Turns int } }
		r := w.do(w.token, http.MethodGet, "/skep/v1/tasks/"+task, "")
		return json.Unmarshal([]byte(r.body), &summary) == nil && summary.Usage.Turns == 1
	})
}

// relay is a script that sends a message to and fro between boss and math n times.
func relay(n int) string {
	if n == 0 {
		return "[]"
	}
	target := "math"
	if n%2 == 0 {
		target = "boss"
	}
	return script("send_request", obj{"target": target, "subject": fmt.Sprint("hop", n), "body": relay(n - 1)})
}

// TestMessageLimit: two agents that write to each other without end are stopped
// by the task's limit. What is stopped is kept; the entrypoint has one turn to
// finish, and if it does not, the system does (R-079, G-60).
func TestMessageLimit(t *testing.T) {
	t.Parallel()
	configured := newWorld(t, "", "[limits]\ntask_messages = 4\n")
	for _, c := range []struct {
		name   string
		kwargs obj
		hops   int // turns before the limit
	}{
		{"configured", nil, 4},
		{"null", obj{"max_steps": nil}, 4},
		{"lower", obj{"max_steps": 3}, 3},
		{"higher is for admins", obj{"max_steps": 6}, 4},
	} {
		r := configured.post(obj{"task_id": c.name, "body": relay(7), "kwargs": c.kwargs})
		if got := r.response(t); !strings.HasPrefix(got, "boss got [::maximum_steps_reached::]") || !strings.Contains(got, "[hop6]") {
			t.Errorf("%s: answer %q", c.name, got)
		}
		rec := configured.record(c.name)
		flow := rec.flow(t)
		if len(flow) != c.hops+3 || flow[c.hops+1] != "hive>boss:"+mail.SubjectMaximumStepsReached {
			t.Errorf("%s: mail %q", c.name, flow)
		}
		if diff := cmp.Diff([]string{fmt.Sprint("hop", 8-c.hops)}, rec.stash(t)); diff != "" {
			t.Errorf("%s: stash (-want +got)\n%s", c.name, diff)
		}
	}
	for _, bad := range []any{0, -1, 1.5, "3"} {
		if r := configured.post(obj{"body": "x", "kwargs": obj{"max_steps": bad}}); r.status != http.StatusBadRequest {
			t.Errorf("max_steps %v: %d %s", bad, r.status, r.body)
		}
	}
	// desk cannot complete tasks, so its grace turn does not.
	r := configured.post(obj{"entrypoint": "desk", "body": script("send_request", obj{"target": "math", "subject": "s", "body": "[]"}), "kwargs": obj{"max_steps": 1}})
	if got := r.response(t); r.subject() != mail.SubjectRuntimeError || !strings.Contains(got, "its limit of 1 messages") {
		t.Errorf("without a grace completion: %q %q", r.subject(), got)
	}
}
