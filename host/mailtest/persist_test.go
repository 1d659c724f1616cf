package mailtest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// TestRestartKeepsTasks: a host that starts again on its data knows its tasks,
// their logs and histories, each message once, their answers and their stash, and
// goes on with them (R-021, R-024, R-026, S-06, G-32).
func TestRestartKeepsTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "")
	body := obj{"task_id": "done", "body": script("send_request", obj{"target": "math", "subject": "s", "body": "b"}, "await_message", obj{})}
	first := w.post(body, "Idempotency-Key", "once").response(t)
	stashOf(w, "stashed")
	w.ask(obj{"task_id": "stalled", "body": "[]"})
	before := w.do(w.token, http.MethodGet, "/tasks", "").body
	w.restart()
	if after := w.do(w.token, http.MethodGet, "/tasks", "").body; after != before {
		t.Errorf("GET /tasks (-before +after)\n%s", cmp.Diff(before, after))
	}
	if again := w.post(body, "Idempotency-Key", "once").response(t); again != first {
		t.Errorf("the repeat got %q, the first post %q", again, first)
	}
	if got := w.ask(obj{"task_id": "done", "subject": "more", "body": "m"}); got != "boss got [more] m" {
		t.Errorf("answer %q", got)
	}
	want := []string{"New Message", "Re: s", mail.SubjectTaskComplete, "more", mail.SubjectTaskComplete}
	if diff := cmp.Diff(want, w.taken("done", "boss")); diff != "" {
		t.Errorf("history (-want +got)\n%s", diff)
	}
	w.ask(obj{"task_id": "stashed", "body": "[]"})
	want = []string{mail.SubjectTaskComplete, "i", "b", "r1", "r2", mail.SubjectRuntimeError}
	if diff := cmp.Diff(want, w.taken("stashed", "math")); diff != "" {
		t.Errorf("order after the start (-want +got)\n%s", diff)
	}
}

// TestShutdown: a host that stops lets turns end within its grace; it tells those
// whose turns do not, takes no new posts, and goes on with their tasks at the next
// start.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, grace string
		status      int
	}{{"enough", "1m", http.StatusOK}, {"none", "0s", http.StatusServiceUnavailable}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			w := newWorldOf(t, "", g.granted(hive), "[server]\nshutdown_grace = \""+c.grace+"\"\n")
			told := make(chan reply, 1)
			name, args := g.step()
			post := obj{"task_id": "t", "body": script(name, args, "task_complete", obj{"finish_message": "woke"})}
			go func() { told <- w.post(post, "Idempotency-Key", "once") }()
			g.await(1)
			stopped := make(chan struct{})
			go func() { w.stop(); close(stopped) }()
			w.eventually("the host takes no posts", w.closed)
			if c.status == http.StatusServiceUnavailable {
				<-stopped
			}
			g.open()
			r := <-told
			<-stopped
			if r.status != c.status {
				t.Errorf("the caller got %d %s", r.status, r.body)
			}
			if c.status == http.StatusServiceUnavailable && r.subject() != mail.SubjectShutdownRequested {
				t.Errorf("finish subject %q", r.subject())
			}
			w.start()
			if got := w.post(post, "Idempotency-Key", "once").response(t); got != "woke" {
				t.Errorf("the repeat got %q", got)
			}
			if diff := cmp.Diff(minimalRun[2:], lastOf(w.record("t").names(), 3)); diff != "" {
				t.Errorf("the log ends with (-want +got)\n%s", diff)
			}
			if got := w.taken("t", "boss"); len(got) != 2 {
				t.Errorf("history %q", got)
			}
		})
	}
}

// closed reports whether the host refuses a post, or does not even listen.
func (w *world) closed() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rsp, err := w.open(ctx, w.token, http.MethodPost, "/message", encode(obj{"body": "x"}), "Prefer", "respond-async")
	if err != nil {
		return ctx.Err() == nil
	}
	defer rsp.Body.Close()
	return rsp.StatusCode == http.StatusServiceUnavailable
}

func lastOf(s []string, n int) []string { return s[max(0, len(s)-n):] }

// TestRestartResumesQueue: messages that wait for a turn when the host stops are
// handled after the next start, once and in order; a task whose time ran out in
// between ends then (S-04, S-06, G-37).
func TestRestartResumesQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", oneTurn+"[server]\nshutdown_grace = \"0s\"\n")
	w.hold()
	for _, subject := range []string{"one", "two", "three"} {
		w.accept(obj{"task_id": "t", "subject": subject, "body": "b"})
	}
	w.accept(obj{"task_id": "late", "body": "b", "kwargs": obj{"timeout": 0.001}})
	w.restart()
	if r := w.cancel("gate"); r.status != http.StatusAccepted {
		t.Errorf("cancel: %d %s", r.status, r.body)
	}
	rec := w.settled("t")
	var bodies []string
	for _, m := range rec.mail(t) {
		if m.Type == mail.BroadcastComplete {
			bodies = append(bodies, m.Payload.Body)
		}
	}
	want := []string{"boss got [one] b", "boss got [two] b", "boss got [three] b"}
	if diff := cmp.Diff(want, bodies); diff != "" {
		t.Errorf("completions (-want +got)\n%s", diff)
	}
	if got := w.settled("late").State; got != "timed_out" {
		t.Errorf("the task that was too late is %s", got)
	}
}

// TestTasksAreListed: GET /tasks has every task of the caller under its id, and
// none that was not asked for (R-021, G-43).
func TestTasksAreListed(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	w.ask(obj{"body": "a"})
	w.ask(obj{"body": "b"})
	w.ask(obj{"task_id": "mine", "body": "c"})
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(w.do(w.token, http.MethodGet, "/tasks", "").body), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || all["mine"] == nil || all["*"] != nil {
		t.Errorf("%d tasks", len(all))
	}
	for id := range all {
		if !mail.ValidTaskID(id) || !slices.Equal(w.record(id).names(), minimalRun) {
			t.Errorf("task %q", id)
		}
	}
}
