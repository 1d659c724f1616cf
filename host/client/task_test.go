package client

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTask(t *testing.T) {
	t.Parallel()
	const body = `{"task_id":"a b","task_owner":"user:u@hive","entrypoint":"chief","state":"completed","completed":true,` +
		`"start_time":"2026-11-20T15:52:40.085593+00:00","answer":"yes","usage":{"turns":2,"fuel":18446744073709551615,"cpu_ms":1.5,"host_calls":3}}`
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/skep/v1/tasks/a%20b" {
			t.Errorf("path %s", r.URL.EscapedPath())
		}
		reply(w, 200, body)
	})
	got, err := c.Task(t.Context(), "a b")
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Raw) != body {
		t.Errorf("raw %s", got.Raw)
	}
	got.Raw = nil
	want := Task{
		ID: "a b", Owner: "user:u@hive", Entrypoint: "chief", State: "completed", Completed: true, Answer: "yes",
		StartTime: "2026-11-20T15:52:40.085593+00:00",
		Usage:     Usage{Turns: 2, Fuel: 1<<64 - 1, CPU: 1500 * time.Microsecond, HostCalls: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
	if at := got.Started(); at.UnixMicro() != 1795189960085593 {
		t.Errorf("started %v", at)
	}
}

// TestRecord reads both forms of an event's payload.
func TestRecord(t *testing.T) {
	t.Parallel()
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/task" || r.URL.Query().Get("task_id") != "a&b" {
			t.Errorf("called %s", r.URL)
		}
		reply(w, 200, `{"task_id":"a&b","title":null,"answer":null,"events":[
			{"event":"tool_call","data":"{\"description\":\"d1\",\"extra_data\":{\"caller\":\"chief\"}}","id":null,"retry":null,"comment":null,"_sep":"\r\n"},
			{"event":"task_complete","data":{"description":"d2","extra_data":{"response":"yes"}},"id":"4"},
			{"event":"task_error","data":{"description":"d3","response":"no"},"id":5}]}`)
	})
	got, err := c.Record(t.Context(), "a&b")
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Name: "tool_call", Description: "d1", Extra: json.RawMessage(`{"caller":"chief"}`)},
		{Cursor: 4, Name: "task_complete", Description: "d2", Extra: json.RawMessage(`{"response":"yes"}`), Response: "yes"},
		{Cursor: 5, Name: "task_error", Description: "d3", Response: "no"},
	}
	if diff := cmp.Diff(want, got.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RequestURI() {
		case "/skep/v1/tasks?limit=2":
			reply(w, 200, `{"tasks":[{"task_id":"3"},{"task_id":"2"}],"next":"2026-01-01T00:00:00+00:00"}`)
		case "/skep/v1/tasks?before=2026-01-01T00%3A00%3A00%2B00%3A00&limit=2":
			reply(w, 200, `{"tasks":[{"task_id":"1"}],"next":null}`)
		default:
			t.Errorf("called %s", r.URL.RequestURI())
			reply(w, 404, `{}`)
		}
	})
	var got []string
	for before := ""; ; {
		tasks, next, err := c.Tasks(t.Context(), before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			got = append(got, task.ID)
		}
		if before = next; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"3", "2", "1"}, got); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

func TestCancelAndHistory(t *testing.T) {
	t.Parallel()
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.RequestURI() {
		case "POST /skep/v1/tasks/t/cancel":
			reply(w, 202, `{"task_id":"t","status":"accepted"}`)
		case "GET /skep/v1/tasks/t/history?after=3&agent=chief&limit=2":
			reply(w, 200, `{"task_id":"t","agent":"chief","entries":[{"seq":4},{"seq":5}],"next":5}`)
		case "GET /skep/v1/tasks/t/history?agent=chief":
			reply(w, 200, `{"task_id":"t","agent":"chief","entries":[],"next":null}`)
		default:
			t.Errorf("called %s %s", r.Method, r.URL.RequestURI())
			reply(w, 404, `{"detail":"task 'x' not found"}`)
		}
	})
	if err := c.Cancel(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	h, err := c.History(t.Context(), "t", "chief", 3, 2)
	if err != nil || len(h.Entries) != 2 || h.Next == nil || *h.Next != 5 {
		t.Errorf("history %+v, %v", h, err)
	}
	h, err = c.History(t.Context(), "t", "chief", 0, 0)
	if err != nil || len(h.Entries) != 0 || h.Next != nil {
		t.Errorf("history %+v, %v", h, err)
	}
}

func TestUsageSurvivesJSON(t *testing.T) {
	t.Parallel()
	want := Usage{Turns: 1, Fuel: 1<<64 - 1, CPU: 1234567 * time.Nanosecond, HostCalls: 2, Fetches: 3, FetchBytes: 4, Tokens: 5, MicroUSD: 6}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Usage
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want.CPU = want.CPU.Truncate(time.Microsecond)
	if got != want {
		t.Errorf("%s gives %+v, want %+v", raw, got, want)
	}
}
