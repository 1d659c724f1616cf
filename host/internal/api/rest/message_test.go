package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPost_R022_S17(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
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

// The payload of the reference client with its eight keys and its nulls, and all
// other accepted forms.
func TestPostTakes_X04_X25(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for name, c := range map[string]struct{ body, want string }{
		"the reference client":   {`{"subject":"s","body":"b","msg_type":"request","entrypoint":null,"show_events":false,"task_id":null,"resume_from":null,"kwargs":{}}`, "boss got [s] b"},
		"nulls everywhere":       {`{"body":"b","message":null,"subject":null,"msg_type":null,"entrypoint":null,"show_events":null,"stream":null,"task_id":null,"resume_from":null,"kwargs":null}`, "boss got [New Message] b"},
		"message for body":       {`{"message":"m"}`, "boss got [New Message] m"},
		"body goes first":        {`{"message":"m","body":"b"}`, "boss got [New Message] b"},
		"empty body, message":    {`{"message":"m","body":""}`, "boss got [New Message] m"},
		"empty fields":           {`{"body":"b","subject":"","msg_type":"","entrypoint":"  ","task_id":"","resume_from":""}`, "boss got [New Message] b"},
		"no UUID as task":        {`{"body":"b","task_id":"test-task-id"}`, "boss got [New Message] b"},
		"entrypoint trimmed":     {`{"body":"b","entrypoint":" boss "}`, "boss got [New Message] b"},
		"unknown fields":         {`{"body":"b","Body":"x","extra":{"a":[1]}}`, "boss got [New Message] b"},
		"whole steps":            {`{"body":"b","kwargs":{"max_steps":9.0}}`, "boss got [New Message] b"},
		"unknown kwargs":         {`{"body":"b","kwargs":{"temperature":1,"timeout":null,"max_steps":null}}`, "boss got [New Message] b"},
		"interrupt":              {`{"body":"b","msg_type":"interrupt"}`, "boss got [New Message] b"},
		"space around":           {" \r\n{\"body\":\"b\"}\n\t", "boss got [New Message] b"},
		"results without resume": {`{"body":"b","kwargs":{"breakpoint_tool_call_result":[{"call_id":"c","content":"x"}],"breakpoint_tool_caller":"boss"}}`, "boss got [New Message] b"},
	} {
		a := h.do(request{method: "POST", path: "/message", body: c.body})
		var got struct{ Response string }
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.status, a.body)
			continue
		}
		a.json(t, &got)
		if got.Response != c.want {
			t.Errorf("%s: response %q, want %q", name, got.Response, c.want)
		}
	}
}

func TestPostBroadcast_X17(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	a := h.post(obj{"body": calls(finish("done")), "msg_type": "broadcast", "stream": true})
	first := events(t, a.body)[0]
	if !strings.Contains(first.data, `"msg_type":"broadcast"`) || !strings.Contains(first.data, `"recipients":[{"address_type":"agent","address":"boss"}]`) {
		t.Errorf("a broadcast is handed over as %s", first.data)
	}
}

// Each is 400 with this very text, and none starts a task.
func TestPostRefuses_R088_X16(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	if got := h.postAndWait(obj{"body": "b", "task_id": "known"}); got == "" {
		t.Fatal("no answer")
	}
	const results = "kwargs.breakpoint_tool_call_result must have "
	for body, want := range map[string]string{
		`{"body":""}`:                  "no message provided",
		`{}`:                           "no message provided",
		`{"body":null,"message":null}`: "no message provided",
		`{"boddy":"x"}`:                "no message provided: the text goes into the member 'body'",
		`{"body":5}`:                   "body must be a string, got int",
		`{"body":"b","message":["x"]}`: "message must be a string, got list",
		`{"body":"b","subject":true}`:  "subject must be a string, got bool",
		`{"body":"b","subject":"::task_complete::"}`:                                          "subject must not begin with '::', which is reserved for the system",
		`{"body":"b","msg_type":5}`:                                                           "msg_type must be a string, got int",
		`{"body":"b","msg_type":5.5}`:                                                         "msg_type must be a string, got float",
		`{"body":"b","msg_type":{}}`:                                                          "msg_type must be a string, got dict",
		`{"body":"b","msg_type":"letter"}`:                                                    "invalid message type: letter",
		`{"body":"b","msg_type":"Request"}`:                                                   "invalid message type: Request",
		`{"body":"b","msg_type":"response"}`:                                                  "error processing message: type 'response' not implemented for this method",
		`{"body":"b","msg_type":"broadcast_complete"}`:                                        "error processing message: type 'broadcast_complete' not implemented for this method",
		`{"body":"b","entrypoint":"nobody"}`:                                                  "entrypoint 'nobody' is not an agent of swarm 'hive'",
		`{"body":"b","entrypoint":"bos"}`:                                                     "entrypoint 'bos' is not an agent of swarm 'hive'; did you mean 'boss'?",
		`{"body":"b","entrypoint":"maths"}`:                                                   "entrypoint 'maths' is not an agent of swarm 'hive'",
		`{"body":"b","entrypoint":"math"}`:                                                    "agent 'math' is not an entrypoint (enable_entrypoint is false)",
		`{"body":"b","entrypoint":7}`:                                                         "entrypoint must be a string, got int",
		`{"body":"b","task_id":7}`:                                                            "task_id must be a string, got int",
		`{"body":"b","task_id":"a\nb"}`:                                                       "task_id must be 1 to 256 printable characters",
		`{"body":"b","show_events":"yes"}`:                                                    "show_events must be a boolean, got str",
		`{"body":"b","stream":1}`:                                                             "stream must be a boolean, got int",
		`{"body":"b","resume_from":"yesterday"}`:                                              "invalid resume_from: yesterday",
		`{"body":"b","resume_from":["user_response"]}`:                                        "resume_from must be a string, got list",
		`{"body":"b","resume_from":"user_response"}`:                                          "task_id is required",
		`{"body":"b","kwargs":[]}`:                                                            "kwargs must be an object, got list",
		`{"body":"b","kwargs":{"body":"x"}}`:                                                  "kwargs must not contain 'body', which is a field of the request",
		`{"body":"b","kwargs":{"task_id":null}}`:                                              "kwargs must not contain 'task_id', which is a field of the request",
		`{"body":"b","kwargs":{"timeout":0}}`:                                                 "kwargs.timeout must be a positive number of seconds, at most 315360000",
		`{"body":"b","kwargs":{"timeout":-1}}`:                                                "kwargs.timeout must be a positive number of seconds, at most 315360000",
		`{"body":"b","kwargs":{"timeout":"5"}}`:                                               "kwargs.timeout must be a positive number of seconds, at most 315360000",
		`{"body":"b","kwargs":{"timeout":1e300}}`:                                             "kwargs.timeout must be a positive number of seconds, at most 315360000",
		`{"body":"b","kwargs":{"timeout":1e999}}`:                                             "kwargs.timeout must be a positive number of seconds, at most 315360000",
		`{"body":"b","kwargs":{"max_steps":0}}`:                                               "kwargs.max_steps must be a positive integer or null",
		`{"body":"b","kwargs":{"max_steps":-3}}`:                                              "kwargs.max_steps must be a positive integer or null",
		`{"body":"b","kwargs":{"max_steps":2.5}}`:                                             "kwargs.max_steps must be a positive integer or null",
		`{"body":"b","kwargs":{"max_steps":true}}`:                                            "kwargs.max_steps must be a positive integer or null",
		`{"body":"b","kwargs":{"max_steps":99999999999}}`:                                     "kwargs.max_steps must be a positive integer or null",
		`{"resume_from":"breakpoint_tool_call"}`:                                              "kwargs.breakpoint_tool_call_result is required to resume from a breakpoint tool call",
		`{"body":"b","kwargs":{"breakpoint_tool_caller":5}}`:                                  "kwargs.breakpoint_tool_caller must be a string, got int",
		`{"resume_from":"breakpoint_tool_call","kwargs":{"breakpoint_tool_call_result":"x"}}`: "task_id is required",
		`{"resume_from":"breakpoint_tool_call","task_id":"known","kwargs":{"breakpoint_tool_call_result":"x"}}`:             "task 'known' has no pending breakpoint tool calls",
		`{"resume_from":"breakpoint_tool_call","task_id":"known","kwargs":{"breakpoint_tool_call_result":{"content":"x"}}}`: "task 'known' has no pending breakpoint tool calls",
		`{"resume_from":"breakpoint_tool_call","task_id":"known","kwargs":{"breakpoint_tool_call_result":null}}`:            "kwargs.breakpoint_tool_call_result is required to resume from a breakpoint tool call",
		`{"body":"b","kwargs":{"breakpoint_tool_call_result":5}}`:                                                           "kwargs.breakpoint_tool_call_result must be a string, an object or an array, got int",
		`{"body":"b","kwargs":{"breakpoint_tool_call_result":{"call_id":"c"}}}`:                                             results + "the string content",
		`{"body":"b","kwargs":{"breakpoint_tool_call_result":"{}"}}`:                                                        results + "the string content",
		`{"body":"b","kwargs":{"breakpoint_tool_call_result":[{"content":"x"}]}}`:                                           "kwargs.breakpoint_tool_call_result must have objects with the strings call_id and content",
		`{"body":"b","kwargs":{"breakpoint_tool_call_result":["x"]}}`:                                                       "kwargs.breakpoint_tool_call_result must have objects with the strings call_id and content",
	} {
		a := h.do(request{method: "POST", path: "/message", body: body})
		if want := detail(want); a.status != http.StatusBadRequest || a.body != want {
			t.Errorf("%s\n got %d %s\nwant 400 %s", body, a.status, a.body, want)
		}
	}
	var records map[string]any
	h.do(request{path: "/tasks"}).json(t, &records)
	if len(records) != 1 {
		t.Errorf("refused posts left %d tasks", len(records)-1)
	}
}

func detail(text string) string {
	raw, err := json.Marshal(obj{"detail": text})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Two readers of one body must read the same in it.
func TestPostMalformedJSON_R088(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	for name, c := range map[string]struct{ body, want string }{
		"nothing":            {"", "the body is empty"},
		"no JSON":            {"hello", "byte 1, 'h'"},
		"cut off":            {`{"body":"b"`, "it ends too early"},
		"two values":         {`{"body":"b"}{"body":"c"}`, "byte 13, '{'"},
		"bytes behind":       {`{"body":"b"} x`, "byte 14, 'x'"},
		"an array":           {`[{"body":"b"}]`, "must be a JSON object, got list"},
		"a string":           {`"body"`, "must be a JSON object, got str"},
		"null":               {`null`, "must be a JSON object, got NoneType"},
		"twice the same":     {`{"body":"b","body":"c"}`, `duplicate name "body"`},
		"twice, escaped":     {`{"body":"b","bod\u0079":"c"}`, `duplicate name "body"`},
		"twice within":       {`{"body":"b","kwargs":{"timeout":1,"timeout":2}}`, `duplicate name "timeout"`},
		"twice where unread": {`{"body":"b","x":[{"a":1,"a":2}]}`, `duplicate name "a"`},
		"too deep":           {`{"body":"b","x":` + deep + `}`, "nested deeper than 64 levels"},
		"far too deep":       {`{"body":"b","x":` + strings.Repeat("[", 20000), "nested deeper than 64 levels"},
		"broken text":        {"{\"body\":\"\xff\"}", "not UTF-8"},
		"comma":              {`{"body":"b",}`, "byte 13, '}', is not what may stand there"},
	} {
		a := h.do(request{method: "POST", path: "/message", body: c.body})
		var got struct{ Detail string }
		a.json(t, &got)
		if a.status != http.StatusBadRequest || !strings.HasPrefix(got.Detail, "error parsing request: ") || !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s: %d %s, want 400 with %q", name, a.status, a.body, c.want)
		}
	}
	if a := h.do(request{method: "POST", path: "/message", body: `{"body":"b","x":` + deep[1:127] + `}`}); a.status != http.StatusOK {
		t.Errorf("64 levels: %d %s", a.status, a.body)
	}
}

func TestResume_R024_R025_R026(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for name, more := range map[string]obj{
		"plain":         {},
		"user_response": {"resume_from": "user_response"},
	} {
		first := h.postAndWait(obj{"body": "one", "task_id": name})
		again := obj{"body": "two", "task_id": name}
		for k, v := range more {
			again[k] = v
		}
		second := h.postAndWait(again)
		if first != "boss got [New Message] one" || second != "boss got [New Message] two" {
			t.Errorf("%s: answers %q, %q", name, first, second)
		}
		again["stream"] = true
		raw := h.post(again).body
		if strings.Contains(raw, "[New Message] one") {
			t.Errorf("%s: a stream repeats what was before its post: %s", name, raw)
		}
	}
	for _, resume := range []obj{
		{"body": "b", "task_id": "unknown", "resume_from": "user_response"},
		{"task_id": "unknown", "resume_from": "breakpoint_tool_call", "kwargs": obj{"breakpoint_tool_call_result": "x"}},
	} {
		if a := h.post(resume); a.status != http.StatusNotFound || a.body != detail("task 'unknown' not found") {
			t.Errorf("%v: %d %s", resume, a.status, a.body)
		}
	}
}

func TestShowEvents(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"body": "one", "task_id": "t"})
	a := h.post(obj{"body": "two", "task_id": "t", "show_events": true})
	var got struct {
		Events []struct {
			Event string
			Data  struct {
				Description string
				Extra       json.RawMessage `json:"extra_data"`
			}
			Sep string `json:"_sep"`
		}
	}
	a.json(t, &got)
	var names []string
	for _, e := range got.Events {
		names = append(names, e.Event)
	}
	run := []string{"new_message", "tool_call", "task_complete_call", "new_message", "task_complete"}
	if diff := cmp.Diff(slices.Concat(run, run), names); diff != "" {
		t.Errorf("the whole log of the task (-want +got)\n%s", diff)
	}
	last := got.Events[len(got.Events)-1]
	if last.Data.Description != "response: 'boss got [New Message] two'" || last.Sep != "\r\n" || string(last.Data.Extra) == "" {
		t.Errorf("task_complete in the log is %+v", last)
	}
}

// A task's own outcome is a 200, also when the system made it.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for name, c := range map[string]struct {
		fields          obj
		subject, answer string
	}{
		"failed turn": {obj{"body": calls("trap", obj{})}, "::agent_error::", "unreachable executed"},
		"stalled":     {obj{"body": "[]"}, "::runtime_error::", "stalled"},
		"timeout":     {obj{"body": calls("gate", obj{"name": "never"}), "kwargs": obj{"timeout": 0.05}}, "::task_timeout::", "timed out"},
		"max_steps": {obj{"body": calls("send_request", obj{"target": "math", "subject": "s", "body": "b"}, "await_message", obj{}),
			"kwargs": obj{"max_steps": 1}}, "::task_complete::", "maximum_steps_reached"},
	} {
		a := h.post(c.fields)
		if got := a.header.Get("X-Mail-Finish-Subject"); a.status != http.StatusOK || got != c.subject || !strings.Contains(a.body, c.answer) {
			t.Errorf("%s: %d %q %s, want %q and %q", name, a.status, got, a.body, c.subject, c.answer)
		}
	}
	all := events(t, h.post(obj{"body": calls("gate", obj{"name": "never"}), "kwargs": obj{"timeout": 0.05}, "stream": true}).body)
	if last := all[len(all)-1]; last.name != "task_error" || !strings.Contains(last.get(t, "response"), "timed out") {
		t.Errorf("a stream that times out ends with %+v", last)
	}
}

// A post to a running task joins it. Each caller gets the completion that came
// after its own message, and a stream does not end with another's.
func TestConcurrentPosts(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	var first answer
	var stream string
	var wg sync.WaitGroup
	wg.Go(func() {
		first = h.post(obj{"task_id": "t", "body": calls("gate", obj{"name": "a"}, "task_complete", obj{"finish_message": "one"})})
	})
	eventually(t, "the task runs", func() bool { return h.do(request{path: "/skep/v1/tasks/t"}).status == http.StatusOK })
	wg.Go(func() {
		stream = h.post(obj{"task_id": "t", "body": calls(finish("two")), "stream": true}).body
	})
	eventually(t, "the second post waits", func() bool {
		return strings.Contains(h.do(request{path: "/skep/v1/tasks/t"}).body, `"waiting":2`)
	})
	h.script.open("a")
	wg.Wait()
	if !strings.Contains(first.body, `"response":"one"`) {
		t.Errorf("the first post got %d %s", first.status, first.body)
	}
	all := events(t, stream)
	ends := 0
	for _, e := range all {
		if e.name == "task_complete" {
			ends++
		}
	}
	if last := all[len(all)-1]; ends != 1 || last.name != "task_complete" || last.get(t, "response") != "two" {
		t.Errorf("the second post's stream has %v and ends with %+v", eventNames(all), last)
	}
}

func TestDisconnect(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for _, stream := range []bool{false, true} {
		task, gate := "plain", "p"
		if stream {
			task, gate = "stream", "s"
		}
		ctx, cancel := context.WithCancel(context.Background())
		r, err := buildRequest(ctx, h.server.URL, postRequest(obj{"task_id": task, "stream": stream,
			"body": calls("gate", obj{"name": gate}, "task_complete", obj{"finish_message": "done"})}))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if rsp, err := h.client.Do(r); err == nil {
				read := make([]byte, 1)
				for err == nil {
					_, err = rsp.Body.Read(read)
				}
				rsp.Body.Close()
			}
		}()
		eventually(t, "the task runs", func() bool { return h.do(request{path: "/skep/v1/tasks/" + task}).status == http.StatusOK })
		cancel()
		<-done
		eventually(t, "the stream is let go", func() bool { return h.handler.Streams() == 0 })
		h.script.open(gate)
		eventually(t, "the task goes on to its end", func() bool {
			return strings.Contains(h.do(request{path: "/skep/v1/tasks/" + task}).body, `"answer":"done"`)
		})
	}
}

func TestDrain_5_12(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	body := calls("gate", obj{"name": "never"})
	var plain, stream answer
	var wg sync.WaitGroup
	wg.Go(func() { plain = h.post(obj{"task_id": "p", "body": body}) })
	wg.Go(func() { stream = h.post(obj{"task_id": "s", "body": body, "stream": true}) })
	for _, task := range []string{"p", "s"} {
		eventually(t, "the task runs", func() bool { return h.do(request{path: "/skep/v1/tasks/" + task}).status == http.StatusOK })
	}
	h.drain()
	wg.Wait()
	if a := h.post(obj{"body": "late"}); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("a new post gets %d %s %v", a.status, a.body, a.header)
	}
	if plain.status != http.StatusServiceUnavailable || plain.header.Get("Retry-After") == "" ||
		plain.header.Get("X-Mail-Finish-Subject") != "::shutdown_requested::" || plain.header.Get("X-Mail-Task-Id") != "p" ||
		plain.body != detail("the host is shutting down; the task goes on at its next start") {
		t.Errorf("a waiting caller gets %d %s %v", plain.status, plain.body, plain.header)
	}
	all := events(t, stream.body)
	last := all[len(all)-1]
	if last.name != "task_error" || !strings.HasPrefix(last.get(t, "response"), "::shutdown_requested::") || last.id != "" {
		t.Errorf("a stream ends with %+v", last)
	}
}

func TestQueueIsFull(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.def.Limits.Queue = 1 })
	if a := h.post(obj{"body": calls("gate", obj{"name": "g"}, "task_complete", obj{"finish_message": "done"})}, "Prefer", "respond-async"); a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := h.post(obj{"body": "b"}); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("a message too many: %d %s", a.status, a.body)
	}
	h.script.open("g")
}

// The runtime's clock is not the test's: a short timeout must end a task soon.
func TestTimeoutIsShort(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	begun := time.Now()
	h.post(obj{"body": calls("gate", obj{"name": "never"}), "kwargs": obj{"timeout": 0.0001}})
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
