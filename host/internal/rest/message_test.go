package rest_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPost_R022_S17(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	a := h.post(obj{"body": "hello"})
	if want := `{"response":"boss got [New Message] hello","events":null}`; a.status != http.StatusOK || a.body != want {
		t.Errorf("POST /message = %d %s, want 200 %s", a.status, a.body, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Mail-Finish-Subject": "::task_complete::",
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("header %s = %q, want %q", name, got, want)
		}
	}
	if len(a.header.Get("X-Mail-Task-Id")) != 36 {
		t.Errorf("X-MAIL-Task-Id = %q is no UUID", a.header.Get("X-Mail-Task-Id"))
	}
}

func TestPostStream_S17(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	a := h.post(obj{"body": "hello", "task_id": "t1", "stream": true})
	all := events(t, a.body)
	want := []string{"new_message", "tool_call", "task_complete_call", "new_message", "task_complete"}
	if diff := cmp.Diff(want, eventNames(all)); a.status != http.StatusOK || diff != "" {
		t.Fatalf("status %d, events (-want +got)\n%s", a.status, diff)
	}
	if !slices.Equal(keysOf(t, all[0].data), []string{"timestamp", "description", "task_id", "extra_data"}) {
		t.Errorf("an ordinary event has %v", keysOf(t, all[0].data))
	}
	last := all[len(all)-1]
	if !slices.Equal(keysOf(t, last.data), []string{"timestamp", "task_id", "response"}) || last.get(t, "response") != "boss got [New Message] hello" {
		t.Errorf("task_complete is %s", last.data)
	}
}
