package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPostStream_S17(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	a := h.post(obj{"body": "<hello>", "task_id": "t1", "stream": true})
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache",
		"X-Accel-Buffering": "no", "X-Mail-Task-Id": "t1",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("header %s = %q, want %q", name, got, want)
		}
	}
	all := events(t, a.body)
	want := []string{"new_message", "tool_call", "task_complete_call", "new_message", "task_complete"}
	if diff := cmp.Diff(want, eventNames(all)); a.status != http.StatusOK || diff != "" {
		t.Fatalf("status %d, events (-want +got)\n%s", a.status, diff)
	}
	for i, e := range all {
		if e.id != fmt.Sprint(i+1) || e.get(t, "task_id") != "t1" {
			t.Errorf("event %d is %+v", i, e)
		}
	}
	if !slices.Equal(keysOf(t, all[0].data), []string{"timestamp", "description", "task_id", "extra_data"}) {
		t.Errorf("an ordinary event has %v", keysOf(t, all[0].data))
	}
	if !strings.HasPrefix(all[0].get(t, "description"), "sending message:\n<incoming_message>") {
		t.Errorf("new_message is described as %q", all[0].get(t, "description"))
	}
	last := all[len(all)-1]
	if !slices.Equal(keysOf(t, last.data), []string{"timestamp", "task_id", "response"}) || last.get(t, "response") != "boss got [New Message] <hello>" {
		t.Errorf("task_complete is %s", last.data)
	}
}

// conversation is a task with several turns and events.
func conversation() obj {
	return obj{"task_id": "talk", "body": calls(
		"send_request", obj{"target": "math", "subject": "s", "body": "2+2"},
		"send_request", obj{"target": "text", "subject": "s", "body": "words"},
		"await_message", obj{})}
}

func TestFollowResumes(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(conversation())
	get := func(header, query string) []sse {
		q := request{path: "/skep/v1/tasks/talk/events" + query, header: http.Header{}}
		if header != "" {
			q.header.Set("Last-Event-ID", header)
		}
		a := h.do(q)
		if a.status == http.StatusNoContent && header != "" {
			return nil // nothing is left
		}
		if a.status != http.StatusOK {
			t.Fatalf("%v: %d %s", q, a.status, a.body)
		}
		return events(t, a.body)
	}
	var faults []string
	for whole, grown := get("", ""), true; grown; whole = get("", "") {
		faults = resumeFaults(whole, get)
		grown = len(get("", "")) > len(whole) // an agent may answer after the end of its task
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// resumeFaults are the places of a log behind which a reader does not get the rest.
func resumeFaults(whole []sse, get func(header, query string) []sse) (list []string) {
	if len(whole) < 12 {
		list = append(list, fmt.Sprintf("the log has %d events", len(whole)))
	}
	for i := range whole {
		id := whole[i].id
		if diff := cmp.Diff(whole[i+1:], get(id, ""), cmp.AllowUnexported(sse{})); diff != "" && i+1 < len(whole) {
			list = append(list, fmt.Sprintf("after %s (-want +got)\n%s", id, diff))
		}
		if got := get(id, "?after=0"); len(got) != len(whole)-i-1 {
			list = append(list, fmt.Sprintf("the header does not go before the query: %d events after %s", len(got), id))
		}
		if got := get("", "?after="+id); len(got) != len(whole)-i-1 {
			list = append(list, fmt.Sprintf("%d events after %s", len(got), id))
		}
	}
	return list
}

// Two readers, one from the start and one that comes and goes, see the same.
func TestFollowLive(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.post(obj{"task_id": "t", "body": calls("gate", obj{"name": "g1"}, "send_request", obj{"target": "math", "subject": "s",
		"body": calls("gate", obj{"name": "g2"}, "send_response", obj{"target": "boss", "subject": "r", "body": "b"})}, "await_message", obj{})}, "Prefer", "respond-async")
	steady := make(chan []sse, 1)
	go func() { steady <- events(t, h.do(request{path: "/skep/v1/tasks/t/events"}).body) }()
	var restless []sse
	last := ""
	for step := 0; ; step++ {
		more, ended := h.peek(last)
		restless = append(restless, more...)
		if n := len(restless); n > 0 {
			last = restless[n-1].id
		}
		if ended {
			break
		}
		if step < 2 {
			h.script.open(fmt.Sprint("g", step+1))
		}
	}
	if diff := cmp.Diff(<-steady, restless, cmp.AllowUnexported(sse{})); diff != "" {
		t.Errorf("the readers differ (-steady +restless)\n%s", diff)
	}
}

// peek reads a stream after an id until it is silent for a while or ends.
func (h *testHost) peek(last string) (got []sse, ended bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q := request{path: "/skep/v1/tasks/t/events", header: http.Header{}}
	if last != "" {
		q.header.Set("Last-Event-ID", last)
	}
	rsp := h.send(ctx, q)
	defer rsp.Body.Close()
	time.AfterFunc(500*time.Millisecond, cancel)
	var raw strings.Builder
	lines := bufio.NewScanner(rsp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		raw.WriteString(strings.TrimSuffix(lines.Text(), "\r") + "\r\n")
	}
	whole, cut := raw.String(), "\r\n\r\n"
	if end := strings.LastIndex(whole, cut); end >= 0 {
		whole = whole[:end+len(cut)]
	} else {
		whole = ""
	}
	got = events(h.t, whole)
	return got, lines.Err() == nil
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": "one"})
	h.postAndWait(obj{"task_id": "t", "body": "two"})
	if all := events(t, h.do(request{path: "/skep/v1/tasks/t/events"}).body); len(all) != 10 {
		t.Errorf("the log of two runs has %v", eventNames(all))
	}
	if a := h.do(request{path: "/skep/v1/tasks/t/events?after=10"}); a.status != http.StatusOK || a.body != "" {
		t.Errorf("after the end: %d %q", a.status, a.body)
	}
	again := h.do(request{path: "/skep/v1/tasks/t/events", header: http.Header{"Last-Event-ID": {"10"}}})
	if again.status != http.StatusNoContent || again.body != "" {
		t.Errorf("a reader that reconnects after the end: %d %q", again.status, again.body)
	}
	if a := h.do(request{path: "/skep/v1/tasks/t/events", header: http.Header{"Last-Event-ID": {"9"}}}); a.status != http.StatusOK || !strings.HasPrefix(a.body, "retry: 2000\r\nid: 10\r\n") {
		t.Errorf("a reader that missed the last event: %d %q", a.status, a.body)
	}
}

func TestFollowRefuses(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": "one"})
	for _, last := range []string{"x", "-1", "1.5", "99999999999999999999"} {
		q := request{path: "/skep/v1/tasks/t/events", header: http.Header{"Last-Event-Id": {last}}}
		if a := h.do(q); a.status != http.StatusBadRequest {
			t.Errorf("Last-Event-ID %q: %d %s", last, a.status, a.body)
		}
		if a := h.do(request{path: "/skep/v1/tasks/t/events?after=" + last}); a.status != http.StatusBadRequest {
			t.Errorf("after=%s: %d %s", last, a.status, a.body)
		}
	}
	if a := h.do(request{path: "/skep/v1/tasks/x/events"}); a.status != http.StatusNotFound || a.body != detail("task 'x' not found") {
		t.Errorf("an unknown task: %d %s", a.status, a.body)
	}
	if a := h.do(request{method: "HEAD", path: "/skep/v1/tasks/t/events"}); a.status != http.StatusOK || a.body != "" {
		t.Errorf("HEAD: %d %q", a.status, a.body)
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Ping = 20 * time.Millisecond })
	a := h.post(obj{"task_id": "t", "stream": true, "body": calls("sleep", obj{"ms": 200}, "task_complete", obj{"finish_message": "done"})})
	pings := 0
	for _, e := range events(t, a.body) {
		if e.name != "ping" {
			continue
		}
		pings++
		if !slices.Equal(keysOf(t, e.data), []string{"timestamp", "task_id"}) || e.id != "" {
			t.Errorf("a ping is %+v", e)
		}
	}
	if pings < 3 {
		t.Errorf("%d pings in 200 ms with one every 20 ms", pings)
	}
	if log := h.do(request{path: "/task?task_id=t"}).body; strings.Contains(log, `"ping"`) {
		t.Error("pings are kept in the log")
	}
}

// A reader that stops reading is cut off, and its task does not notice.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Stall, h.narrow = 2*time.Second, true })
	big := strings.Repeat("x", 200<<10)
	for range 3 {
		h.post(obj{"task_id": "t", "body": big}, "Prefer", "respond-async")
	}
	eventually(t, "the task ends", func() bool {
		return strings.Contains(h.do(request{path: "/skep/v1/tasks?limit=1"}).body, `"completed":true`)
	})
	rsp := h.send(t.Context(), request{path: "/skep/v1/tasks/t/events"})
	defer rsp.Body.Close()
	eventually(t, "the stream is open", func() bool { return h.handler.Streams() == 1 })
	eventually(t, "the reader is cut off", func() bool { return h.handler.Streams() == 0 })
	if got := h.postAndWait(obj{"task_id": "t", "body": "still here"}); got != "boss got [New Message] still here" {
		t.Errorf("the task answers %q", got)
	}
}
