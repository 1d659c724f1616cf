package mailtest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// minimalRun is the log of a task that one turn completes (contract 2.3).
var minimalRun = []string{"new_message", "tool_call", "task_complete_call", "new_message", "task_complete"}

// TestMinimalTask: a post under an unused id starts a task, and its caller gets
// the finishing message, plain and as a stream (R-006, R-009, R-014, R-022, S-06,
// S-11, S-17).
func TestMinimalTask(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	r := w.post(obj{"body": "hi", "subject": "s", "task_id": "plain", "show_events": true})
	if got := r.response(t); got != "boss got [s] hi" || r.subject() != mail.SubjectTaskComplete {
		t.Errorf("answer %q, %q", got, r.subject())
	}
	rec := w.record("plain")
	if diff := cmp.Diff(minimalRun, rec.names()); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
	if rec.State != "completed" || rec.Running || !rec.Completed {
		t.Errorf("record %+v", rec)
	}
	all := rec.mail(t)
	last := all[len(all)-1]
	if to := last.Payload.Recipient(); last.Type != mail.BroadcastComplete || to.Type != mail.Agent || to.Name != mail.ReservedAll {
		t.Errorf("the completion is %+v", last)
	}

	streamed := events(t, w.post(obj{"body": "hi", "subject": "s", "stream": true}).body)
	if diff := cmp.Diff(minimalRun, (record{events: streamed}).names()); diff != "" {
		t.Errorf("stream (-want +got)\n%s", diff)
	}
	if got := streamed[len(streamed)-1].Data.Response; got != "boss got [s] hi" {
		t.Errorf("the stream's answer is %q", got)
	}
}

// TestStreamPing: a stream that has nothing to tell shows that it lives, and a
// task's time ends a stream too (G-38, S-17).
func TestStreamPing(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rsp, err := w.open(ctx, w.token, http.MethodPost, "/message",
		encode(obj{"task_id": "t", "stream": true, "body": script("sleep", obj{"ms": 6e5})}))
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	var names []string
	stream(t, rsp.Body, func(e event) bool {
		if names = append(names, e.Name); e.Name == "ping" && !slices.Contains(names[:len(names)-1], "ping") {
			w.cancel("t")
		}
		return true
	})
	if n := len(names); n < 3 || names[0] != "new_message" || names[n-2] != "ping" || names[n-1] != "task_complete" {
		t.Errorf("events %q", names)
	}
	if slices.Contains(w.record("t").names(), "ping") {
		t.Error("pings are in the log")
	}

	all := events(t, w.post(obj{"stream": true, "body": script("sleep", obj{"ms": 6e5}), "kwargs": obj{"timeout": 0.05}}).body)
	if last := all[len(all)-1]; last.Name != "task_error" || !strings.Contains(last.Data.Response, "timed out") {
		t.Errorf("a stream whose task times out ends with %+v", last)
	}
}
