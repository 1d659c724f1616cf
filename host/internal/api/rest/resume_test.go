package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// resumed is a post that answers a paused task.
func resumed(task string, result any, more ...any) obj {
	kwargs := obj{"breakpoint_tool_call_result": result}
	for i := 0; i < len(more); i += 2 {
		kwargs[more[i].(string)] = more[i+1]
	}
	return obj{"task_id": task, "resume_from": "breakpoint_tool_call", "kwargs": kwargs}
}

// S-17: the answer to a post whose turn asks people is the array of the calls.
// Their results come in any of the forms, and the task goes on.
func TestBreakpoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask    []string
		result any
		want   string
	}{
		"text":            {[]string{"confirm"}, "yes", `{"text":"yes"}`},
		"number as text":  {[]string{"confirm"}, "42", `{"text":"42"}`},
		"object":          {[]string{"confirm"}, obj{"content": "yes"}, `{"text":"yes"}`},
		"object as text":  {[]string{"confirm"}, `{"content":"yes"}`, `{"text":"yes"}`},
		"array of one":    {[]string{"confirm"}, []obj{{"call_id": "t1.c1", "content": "yes"}}, `{"text":"yes"}`},
		"array":           {[]string{"a", "b"}, []obj{{"call_id": "t1.c2", "content": "2"}, {"call_id": "t1.c1", "content": "1"}}, `{"text":"1"}{"text":"2"}`},
		"array as text":   {[]string{"a", "b"}, `[{"call_id":"t1.c2","content":"2"},{"call_id":"t1.c1","content":"1"}]`, `{"text":"1"}{"text":"2"}`},
		"one is missing":  {[]string{"a", "b"}, []obj{{"call_id": "t1.c2", "content": "2"}, {"call_id": "x", "content": "?"}}, `UNAVAILABLE: the task was resumed without a result of this call{"text":"2"}`},
		"nothing as text": {[]string{"confirm"}, "", `{"text":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTestHost(t)
			first := h.postAndWait(obj{"task_id": "t", "body": calls("ask", c.ask)})
			var pending []map[string]string
			if err := json.Unmarshal([]byte(first), &pending); err != nil || len(pending) != len(c.ask) {
				t.Fatalf("%q: %v", first, err)
			}
			if p := pending[0]; p["call_id"] != "t1.c1" || p["id"] != "fc_t1.c1" || p["type"] != "function_call" ||
				p["status"] != "completed" || p["name"] != c.ask[0] || p["arguments"] != `{"n":1}` {
				t.Errorf("%v", p)
			}
			if got := h.postAndWait(resumed("t", c.result)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Every fault of a resume is reported before the task changes.
func TestRefusedResumes(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": calls("ask", []string{"a", "b"})})
	for want, post := range map[string]obj{
		"task 't' waits for 2 breakpoint tool calls; give an array of objects with call_id and content": resumed("t", "x"),
		"agent 'math' has no pending breakpoint tool calls in task 't'":                                 resumed("t", []obj{{"call_id": "t1.c1", "content": "x"}}, "breakpoint_tool_caller", "math"),
		"none of the results is for a pending breakpoint tool call of task 't'":                         resumed("t", []obj{}),
		"kwargs.breakpoint_tool_call_result must have the string content":                               resumed("t", obj{}),
		"kwargs.breakpoint_tool_call_result is required to resume from a breakpoint tool call":          {"task_id": "t", "resume_from": "breakpoint_tool_call"},
	} {
		if a := h.post(post); a.status != http.StatusBadRequest || a.body != detail(want) {
			t.Errorf("%v: %d %s, want %s", post, a.status, a.body, want)
		}
	}
	if a := h.post(resumed("other", "x")); a.status != http.StatusNotFound {
		t.Errorf("another task: %d %s", a.status, a.body)
	}
	bob := resumed("t", []obj{{"call_id": "t1.c1", "content": "x"}})
	q := postRequest(bob)
	q.token = bobToken
	if a := h.do(q); a.status != http.StatusNotFound {
		t.Errorf("another principal: %d %s", a.status, a.body)
	}
	if got := h.postAndWait(resumed("t", []obj{{"call_id": "t1.c1", "content": "1"}, {"call_id": "t1.c2", "content": "2"}}, "breakpoint_tool_caller", "boss")); got != `{"text":"1"}{"text":"2"}` {
		t.Errorf("%q", got)
	}
}

// The stream of a post ends with the pause. The stream of the resume has what
// comes after, and the task shows its state.
func TestBreakpointStreams(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	raw := h.post(obj{"task_id": "t", "body": calls("ask", []string{"a"}), "stream": true}).body
	pause := strings.Index(raw, "event: breakpoint_tool_call")
	if end := strings.Index(raw, "event: task_complete"); pause < 0 || end < pause {
		t.Errorf("%s", raw)
	}
	if a := h.do(request{method: "GET", path: "/task?task_id=t"}); !strings.Contains(a.body, `"state":"paused"`) || !strings.Contains(a.body, `"completed":true`) {
		t.Errorf("%s", a.body)
	}
	if a := h.do(request{path: "/skep/v1/tasks/t"}); !strings.Contains(a.body, `t1.c1`) || !strings.HasSuffix(a.body, `"ended":null}`) {
		t.Errorf("paused: %s", a.body)
	}
	post := resumed("t", "yes")
	post["stream"] = true
	raw = h.post(post).body
	if strings.Contains(raw, "event: breakpoint_tool_call\r") || !strings.Contains(raw, "event: breakpoint_action_complete") ||
		!strings.Contains(raw, `{\"text\":\"yes\"}`) {
		t.Errorf("%s", raw)
	}
}

// A new message to a paused task cancels what it waits for.
func TestUserResponseWhilePaused(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": calls("ask", []string{"a"})})
	got := h.postAndWait(obj{"task_id": "t", "body": "hello", "resume_from": "user_response"})
	if got != "boss got [New Message] hello" {
		t.Errorf("%q", got)
	}
}

// A post that waits when its task pauses is answered when the task goes on, streamed
// or not.
func TestPostsOutlastAPause(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.post(obj{"task_id": "t", "body": calls("gate", obj{"name": "g"}, "ask", []string{"a"})}, "Prefer", "respond-async")
	shows := func(what string, times int) func() bool {
		return func() bool {
			return strings.Count(h.do(request{path: "/task?task_id=t"}).body, what) >= times
		}
	}
	plain, streamed := make(chan string, 1), make(chan string, 1)
	go func() { plain <- h.postAndWait(obj{"task_id": "t", "body": "plain"}) }()
	go func() { streamed <- h.post(obj{"task_id": "t", "body": "streamed", "stream": true}).body }()
	eventually(t, "both are accepted", shows(`"event":"new_message"`, 3))
	h.script.open("g")
	eventually(t, "the task is paused", shows(`"state":"paused"`, 1))
	if got := h.postAndWait(resumed("t", "yes")); got != `{"text":"yes"}` {
		t.Errorf("%q", got)
	}
	if got := <-plain; got != "boss got [New Message] plain" {
		t.Errorf("the plain post: %q", got)
	}
	raw := <-streamed
	if strings.Contains(raw, "event: task_error") || !strings.Contains(raw, "event: breakpoint_action_complete") ||
		!strings.Contains(raw, `"response":"boss got [New Message] streamed"`) {
		t.Errorf("the streamed post:\n%s", raw)
	}
}
