package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$`)

// The record's fields stand in the reference's order; state and usage follow.
func TestTasks_R027_R028_R030(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	if a := h.do(request{path: "/tasks"}); a.status != http.StatusOK || a.body != "{}" {
		t.Errorf("no tasks: %d %s", a.status, a.body)
	}
	h.postAndWait(obj{"task_id": "t1", "body": "one"})
	h.postAndWait(obj{"task_id": "t 2/\"", "body": "two"})
	a := h.do(request{path: "/tasks"})
	var records map[string]json.RawMessage
	a.json(t, &records)
	if diff := cmp.Diff([]string{"t 2/\"", "t1"}, keysOf(t, a.body)); diff != "" {
		t.Errorf("tasks, newest first (-want +got)\n%s", diff)
	}
	want := []string{"task_id", "task_owner", "task_contributors", "start_time", "events", "is_running",
		"task_message_queue", "remote_swarms", "completed", "title", "state", "usage"}
	if diff := cmp.Diff(want, keysOf(t, string(records["t1"]))); diff != "" {
		t.Errorf("record (-want +got)\n%s", diff)
	}
	var r struct {
		Owner        string   `json:"task_owner"`
		Contributors []string `json:"task_contributors"`
		Start        string   `json:"start_time"`
		Events       []map[string]json.RawMessage
		Usage        struct {
			Turns int
			Fuel  int
			CPU   float64 `json:"cpu_ms"`
		}
	}
	if err := json.Unmarshal(records["t1"], &r); err != nil {
		t.Fatal(err)
	}
	if r.Owner != "user:alice@hive" || !slices.Equal(r.Contributors, []string{r.Owner}) || !timeForm.MatchString(r.Start) {
		t.Errorf("record %+v", r)
	}
	if r.Usage.Turns != 1 || r.Usage.Fuel != 7 || r.Usage.CPU != 1.5 {
		t.Errorf("usage %+v", r.Usage)
	}
	var data string
	if err := json.Unmarshal(r.Events[0]["data"], &data); err != nil || keysOf(t, data)[0] != "timestamp" {
		t.Errorf("an event's data is %s, want a string that holds an object", r.Events[0]["data"])
	}
	if diff := cmp.Diff([]string{"_sep", "comment", "data", "event", "id", "retry"}, sorted(mapKeys(r.Events[0]))); diff != "" {
		t.Errorf("event (-want +got)\n%s", diff)
	}
	for _, part := range []string{`"is_running":false`, `"completed":true`, `"remote_swarms":[]`, `"task_message_queue":[]`, `"title":null`, `"state":"completed"`} {
		if !strings.Contains(string(records["t1"]), part) {
			t.Errorf("the record lacks %s", part)
		}
	}
}

func mapKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// A list longer than what is read at once is whole.
func TestTasksManyPages(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.def.Limits.Queue = 0 })
	const n = 207
	for i := range n {
		if a := h.post(obj{"task_id": fmt.Sprint("t", i), "body": "b"}, "Prefer", "respond-async"); a.status != http.StatusAccepted {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if got := keysOf(t, h.do(request{path: "/tasks"}).body); len(got) != n || got[0] != "t206" || got[n-1] != "t0" {
		t.Errorf("%d tasks, from %s to %s", len(got), got[0], got[len(got)-1])
	}
	var all []string
	for next := ""; ; {
		var page struct {
			Tasks []struct {
				ID string `json:"task_id"`
			}
			Next *string
		}
		a := h.do(request{path: "/skep/v1/tasks?limit=100" + next})
		a.json(t, &page)
		for _, task := range page.Tasks {
			all = append(all, task.ID)
		}
		if page.Next == nil {
			break
		}
		next = "&before=" + url.QueryEscape(*page.Next)
	}
	if len(all) != n || all[0] != "t206" || len(slices.Compact(sorted(all))) != n {
		t.Errorf("the pages have %d tasks", len(all))
	}
}

// What waits in an ended task is shown as [priority, sequence, message].
func TestTaskStash(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": calls("send_request", obj{"target": "math", "subject": "s", "body": "b"}, "task_complete", obj{"finish_message": "done"})})
	var r struct {
		Queue [][]json.RawMessage `json:"task_message_queue"`
	}
	h.do(request{path: "/task?task_id=t"}).json(t, &r)
	if len(r.Queue) != 1 || len(r.Queue[0]) != 3 || string(r.Queue[0][0]) != "5" || string(r.Queue[0][1]) != "2" ||
		!strings.Contains(string(r.Queue[0][2]), `"msg_type":"request"`) {
		t.Errorf("queue %s", r.Queue)
	}
	if own := h.do(request{path: "/skep/v1/tasks/t"}).body; !strings.Contains(own, `"waiting":0,"stashed":1`) {
		t.Errorf("own record %s", own)
	}
	h.post(obj{"task_id": "r", "body": calls("gate", obj{"name": "g"}, "task_complete", obj{"finish_message": "done"})}, "Prefer", "respond-async")
	running := h.do(request{path: "/task?task_id=r"}).body
	if !strings.Contains(running, `"task_message_queue":[]`) || !strings.Contains(running, `"is_running":true`) || !strings.Contains(running, `"completed":false`) {
		t.Errorf("a running task's queue is no stash: %s", running)
	}
	h.script.open("g")
}

func TestTask(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t/1", "body": "one"})
	h.postAndWait(obj{"task_id": "u", "body": "one"})
	h.postAndWait(obj{"task_id": "..", "body": "one"})
	const required, text = `{"detail":"task_id is required"}`, `{"detail":"task_id must be a string"}`
	for name, c := range map[string]struct {
		q      request
		status int
		want   string
	}{
		"body":                {request{path: "/task", body: `{"task_id":"t/1"}`}, 200, `{"task_id":"t/1",`},
		"query":               {request{path: "/task?task_id=t%2F1"}, 200, `{"task_id":"t/1",`},
		"body before query":   {request{path: "/task?task_id=u", body: `{"task_id":"t/1"}`}, 200, `{"task_id":"t/1",`},
		"body without it":     {request{path: "/task?task_id=u", body: `{"other":1}`}, 200, `{"task_id":"u",`},
		"body with null":      {request{path: "/task?task_id=u", body: `{"task_id":null}`}, 200, `{"task_id":"u",`},
		"path":                {request{path: "/tasks/u"}, 200, `{"task_id":"u",`},
		"neither":             {request{path: "/task"}, 400, required},
		"empty object":        {request{path: "/task", body: `{}`}, 400, required},
		"empty id":            {request{path: "/task", body: `{"task_id":""}`}, 400, required},
		"a number":            {request{path: "/task", body: `{"task_id":7}`}, 400, text},
		"no JSON":             {request{path: "/task", body: `task`}, 400, `{"detail":"error parsing request: `},
		"an array":            {request{path: "/task", body: `["t"]`}, 400, `{"detail":"error parsing request: must be a JSON object, got list"}`},
		"unknown":             {request{path: "/task", body: `{"task_id":"x"}`}, 404, `{"detail":"task 'x' not found"}`},
		"unknown in query":    {request{path: "/task?task_id=x"}, 404, `{"detail":"task 'x' not found"}`},
		"unknown in path":     {request{path: "/tasks/x"}, 404, `{"detail":"task 'x' not found"}`},
		"own, unknown":        {request{path: "/skep/v1/tasks/x"}, 404, `{"detail":"task 'x' not found"}`},
		"slash in path":       {request{path: "/tasks/t%2F1"}, 200, `{"task_id":"t/1",`},
		"own, slash in path":  {request{path: "/skep/v1/tasks/t%2F1"}, 200, `{"task_id":"t/1",`},
		"own, dots in path":   {request{path: "/skep/v1/tasks/%2E%2E"}, 200, `{"task_id":"..",`},
		"own, history of it":  {request{path: "/skep/v1/tasks/t%2F1/history?agent=boss&limit=1"}, 200, `{"task_id":"t/1","agent":"boss","entries":[{"seq":1,`},
		"own, cancel unknown": {request{method: "POST", path: "/skep/v1/tasks/x/cancel"}, 404, `{"detail":"task 'x' not found"}`},
		"own, cancel ended":   {request{method: "POST", path: "/skep/v1/tasks/u/cancel"}, 409, `{"detail":"task 'u' has already ended (completed)"}`},
	} {
		if a := h.do(c.q); a.status != c.status || !strings.HasPrefix(a.body, c.want) {
			t.Errorf("%s: %d %s, want %d %s…", name, a.status, a.body, c.status, c.want)
		}
	}
}

// To everybody but its owner a task does not exist, whatever their role, and
// the ids of two principals do not meet (R-042, R-053, design §9).
func TestOwnership_R042_R053(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.post(obj{"task_id": "t", "body": calls("gate", obj{"name": "g"}, "task_complete", obj{"finish_message": "alice's"})}, "Prefer", "respond-async")
	for _, token := range []string{bobToken, adminToken, operatorToken} {
		for _, q := range []request{
			{path: "/task?task_id=t"}, {path: "/task", body: `{"task_id":"t"}`}, {path: "/tasks/t"},
			{path: "/skep/v1/tasks/t"}, {path: "/skep/v1/tasks/t/events"}, {path: "/skep/v1/tasks/t/history?agent=boss"}, {path: "/skep/v1/tasks/t/turns"},
			{method: "POST", path: "/skep/v1/tasks/t/cancel"},
			{method: "POST", path: "/message", body: `{"body":"b","task_id":"t","resume_from":"user_response"}`},
		} {
			q.token = token
			if a := h.do(q); a.status != http.StatusNotFound || a.body != `{"detail":"task 't' not found"}` {
				t.Errorf("%s %s as %s: %d %s", q.method, q.path, token, a.status, a.body)
			}
		}
		if a := h.do(request{path: "/tasks", token: token}); a.body != "{}" {
			t.Errorf("/tasks as %s: %s", token, a.body)
		}
		if a := h.do(request{path: "/skep/v1/tasks", token: token}); a.body != `{"tasks":[],"next":null}` {
			t.Errorf("/skep/v1/tasks as %s: %s", token, a.body)
		}
	}
	q := postRequest(obj{"task_id": "t", "body": "hello"})
	q.token = bobToken
	if a := h.do(q); !strings.Contains(a.body, "boss got [New Message] hello") {
		t.Errorf("bob's own t: %d %s", a.status, a.body)
	}
	h.script.open("g")
	eventually(t, "alice's t ends as she said", func() bool {
		return strings.Contains(h.do(request{path: "/skep/v1/tasks/t"}).body, `"answer":"alice's"`)
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	waiting := make(chan answer, 1)
	go func() {
		waiting <- h.post(obj{"task_id": "t", "body": calls("gate", obj{"name": "never"})})
	}()
	eventually(t, "the task runs", func() bool { return h.do(request{path: "/skep/v1/tasks/t"}).status == http.StatusOK })
	if a := h.do(request{path: "/skep/v1/tasks/t"}); !strings.HasSuffix(a.body, `"answer":null,"ended":null}`) {
		t.Errorf("while it runs: %s", a.body)
	}
	a := h.do(request{method: "POST", path: "/skep/v1/tasks/t/cancel"})
	if a.status != http.StatusAccepted || a.body != `{"task_id":"t","status":"accepted","state":"cancelled"}` {
		t.Errorf("cancel: %d %s", a.status, a.body)
	}
	got := <-waiting
	if got.status != http.StatusOK || got.header.Get("X-Mail-Finish-Subject") != "::task_cancelled::" || !strings.Contains(got.body, "user alice") {
		t.Errorf("the waiting post: %d %s", got.status, got.body)
	}
	if a := h.do(request{method: "POST", path: "/skep/v1/tasks/t/cancel"}); a.status != http.StatusConflict {
		t.Errorf("cancelled again: %d %s", a.status, a.body)
	}
	var r struct{ State, Answer, Instance, Ended, Updated string }
	h.do(request{path: "/skep/v1/tasks/t"}).json(t, &r)
	if r.State != "cancelled" || r.Answer == "" || r.Instance != "user:alice" || r.Ended == "" || r.Ended > r.Updated {
		t.Errorf("%+v", r)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(conversation())
	type page struct {
		Entries []struct {
			Seq  int64
			Kind string
		}
		Next *int64
	}
	get := func(query string) (p page) {
		h.do(request{path: "/skep/v1/tasks/talk/history?agent=boss" + query}).json(t, &p)
		return p
	}
	whole := get("")
	if len(whole.Entries) < 5 || whole.Next != nil {
		t.Fatalf("%d entries, next %v", len(whole.Entries), whole.Next)
	}
	var pieces page
	for after := int64(0); ; {
		p := get(fmt.Sprintf("&limit=2&after=%d", after))
		pieces.Entries = append(pieces.Entries, p.Entries...)
		if p.Next == nil {
			break
		}
		after = *p.Next
	}
	if diff := cmp.Diff(whole.Entries, pieces.Entries); diff != "" {
		t.Errorf("page by page (-want +got)\n%s", diff)
	}
	for query, want := range map[string]answer{
		"":                      {400, nil, "agent is required"},
		"?agent=nobody":         {404, nil, "agent 'nobody' not found"},
		"?agent=boss&limit=0":   {400, nil, "limit must be a number from 1 to 500"},
		"?agent=boss&limit=501": {400, nil, "limit must be a number from 1 to 500"},
		"?agent=boss&after=x":   {400, nil, "after must be a number from 0 to 9007199254740992"},
		"?agent=boss&after=-1":  {400, nil, "after must be a number from 0 to 9007199254740992"},
	} {
		if a := h.do(request{path: "/skep/v1/tasks/talk/history" + query}); a.status != want.status || a.body != detail(want.body) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	if a := h.do(request{path: "/skep/v1/tasks/talk/history?agent=desk"}); a.body != `{"task_id":"talk","agent":"desk","entries":[],"next":null}` && a.status != 200 {
		t.Errorf("an agent without history: %d %s", a.status, a.body)
	}
}

func TestOwnListRefuses(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for _, query := range []string{"limit=0", "limit=x", "before=yesterday"} {
		if a := h.do(request{path: "/skep/v1/tasks?" + query}); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

// A log holds any text, in an event and in the text of an event.
func TestLogOfAnyText(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	body := "a \"b\" \\ <c> & \n\t\x01\x7f é 🐝 \u2028 {\"d\":1}"
	h.postAndWait(obj{"task_id": "t1", "body": body})
	var listed map[string]struct {
		Events []struct{ Data string }
	}
	h.do(request{path: "/tasks"}).json(t, &listed)
	if len(listed["t1"].Events) == 0 {
		t.Fatal("no events")
	}
	var data struct {
		Task  string `json:"task_id"`
		Extra struct {
			Message struct{ Message struct{ Body string } } `json:"full_message"`
		} `json:"extra_data"`
	}
	if err := json.Unmarshal([]byte(listed["t1"].Events[0].Data), &data); err != nil {
		t.Fatal(err)
	}
	if data.Task != "t1" || data.Extra.Message.Message.Body != body {
		t.Errorf("the first event is %+v, want the body %q", data, body)
	}
}
