package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newDebugHive(t *testing.T, change ...func(*testHost)) *testHost {
	t.Helper()
	return newTestHost(t, append(change, func(h *testHost) { h.opt.Debug = true })...)
}

// responses posts a conversation and decodes the answer twice, as clients do.
func (h *testHost) responses(body string) (r struct {
	ID, Object, Model string
	Output            []map[string]any
},
) {
	h.t.Helper()
	a := h.do(request{method: "POST", path: "/responses", body: body})
	var inner string
	a.json(h.t, &inner)
	if err := json.Unmarshal([]byte(inner), &r); err != nil || a.status != http.StatusOK {
		h.t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	valid(h.t, document(h.t), "Response", inner)
	return r
}

// What came after the assistant's last word is the message.
func TestResponses(t *testing.T) {
	t.Parallel()
	h := newDebugHive(t)
	for body, want := range map[string]string{
		`{"input":[{"role":"user","content":"hello"}],"tools":[],"instructions":null,"previous_response_id":null,"tool_choice":"auto","parallel_tool_calls":true,"kwargs":{}}`:                                                         "hello",
		`{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"system","content":"c"},{"type":"message","role":"user","content":[{"type":"input_text","text":"d"},{"type":"input_image"}]}],"tools":[]}`: "c\nd\n",
		`{"input":[{"type":"function_call","call_id":"x"},{"role":"user","content":"e"}],"tools":[]}`:                                                                                                                                  "e",
	} {
		r := h.responses(body)
		content, _ := r.Output[0]["content"].([]any)
		if len(content) != 1 {
			t.Fatalf("%v", r)
		}
		got, _ := content[0].(map[string]any)["text"].(string)
		if got != "boss got [New Message] "+want || r.Object != "response" || r.Model != "hive" || r.Output[0]["type"] != "message" {
			t.Errorf("%s: %v", body, r)
		}
		again := h.responses(text(obj{"input": []obj{{"role": "user", "content": "more"}}, "tools": []any{}, "previous_response_id": r.ID}))
		if again.ID != r.ID {
			t.Errorf("the task has become another: %s, %s", r.ID, again.ID)
		}
	}
}

// A paused task is answered with its calls, and goes on with their outputs.
func TestResponsesResume(t *testing.T) {
	t.Parallel()
	h := newDebugHive(t)
	r := h.responses(text(obj{"input": []obj{{"role": "user", "content": calls("ask", []string{"one", "two"})}}, "tools": []any{}}))
	if len(r.Output) != 2 || r.Output[0]["type"] != "function_call" || r.Output[1]["name"] != "two" {
		t.Fatalf("%v", r)
	}
	input := []obj{{"role": "user", "content": "x"}}
	for i, o := range r.Output {
		input = append(input, obj{"type": "function_call_output", "call_id": o["call_id"], "output": []string{"A", "B"}[i]})
	}
	done := h.responses(text(obj{"input": input, "tools": []any{}, "previous_response_id": r.ID}))
	if raw := text(done.Output); !strings.Contains(raw, `\"A\"}{\"text\":\"B\"}`) || done.ID != r.ID {
		t.Errorf("%v", done)
	}
}

func TestUIAgents(t *testing.T) {
	t.Parallel()
	h := newDebugHive(t)
	want := `{"agents":[` +
		`{"name":"boss","comm_targets":["math","text"],"enable_entrypoint":true,"can_complete_tasks":true,"enable_interswarm":false},` +
		`{"name":"math","comm_targets":["boss"],"enable_entrypoint":false,"can_complete_tasks":false,"enable_interswarm":false},` +
		`{"name":"text","comm_targets":["boss"],"enable_entrypoint":false,"can_complete_tasks":false,"enable_interswarm":false},` +
		`{"name":"desk","comm_targets":["boss"],"enable_entrypoint":true,"can_complete_tasks":false,"enable_interswarm":false}],"entrypoint":"boss"}`
	if a := h.do(request{path: "/ui/agents"}); a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A viewer's post is the caller's own. It is streamed unless it says otherwise.
func TestUIMessage(t *testing.T) {
	t.Parallel()
	h := newDebugHive(t)
	a := h.do(request{method: "POST", path: "/ui/message", body: `{"body":"hello","subject":null,"task_id":"t"}`})
	all := events(t, a.body)
	if a.header.Get("Content-Type") != "text/event-stream; charset=utf-8" || all[len(all)-1].get(t, "response") != "boss got [New Message] hello" {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = h.do(request{method: "POST", path: "/ui/message", body: `{"body":"again","task_id":"t","stream":false}`})
	var got struct{ Events []json.RawMessage }
	a.json(t, &got)
	if a.status != http.StatusOK || len(got.Events) < 6 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := h.do(request{path: "/task?task_id=t"}); !strings.Contains(a.body, `"task_owner":"user:alice@hive"`) {
		t.Errorf("%s", a.body)
	}
}

// What a viewer reads is the caller's: every task, its log and its title.
func TestUIReads(t *testing.T) {
	t.Parallel()
	h := newDebugHive(t)
	if a := h.do(request{path: "/ui/tasks"}); a.body != "[]" {
		t.Errorf("no tasks: %s", a.body)
	}
	h.postAndWait(obj{"task_id": "first", "body": "What are seventeen and four together, please?"})
	h.postAndWait(obj{"task_id": "second", "body": "short"})
	h.do(request{method: "POST", path: "/message", token: bobToken, body: `{"task_id":"bobs","body":"private"}`})
	var list []struct {
		Task   string `json:"task_id"`
		Owner  string `json:"task_owner"`
		Done   bool   `json:"completed"`
		Events int    `json:"event_count"`
		Title  string
	}
	h.do(request{path: "/ui/tasks"}).json(t, &list)
	if len(list) != 2 || list[0].Task != "second" || list[0].Title != "short" || list[0].Events < 4 || !list[0].Done || list[1].Owner != "user:alice@hive" {
		t.Errorf("%+v", list)
	}
	if got, want := h.do(request{path: "/ui/task-summary/first?force_regen=true"}).body, `{"task_id":"first","title":"What are seventeen and four together,…"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var one struct {
		Task   string `json:"task_id"`
		Events []struct {
			Event string
			Data  struct {
				Task string `json:"task_id"`
			}
		}
	}
	h.do(request{path: "/ui/task/first"}).json(t, &one)
	if one.Task != "first" || len(one.Events) < 4 || one.Events[0].Event != "new_message" || one.Events[0].Data.Task != "first" {
		t.Errorf("%+v", one)
	}
	var dump struct {
		Count  int `json:"event_count"`
		Events []struct {
			Task string `json:"task_id"`
			ID   string `json:"event_id"`
		}
	}
	a := h.do(request{path: "/ui/dump-events"})
	a.json(t, &dump)
	if dump.Count != len(dump.Events) || dump.Events[0].Task != "second" || dump.Events[0].ID != "1" || strings.Contains(a.body, "private") {
		t.Errorf("%s", a.body)
	}
	want := map[string]int{"/ui/tasks": 200, "/ui/task/first": 200, "/ui/dump-events": 200, "/ui/task/bobs": 404}
	got := map[string]int{}
	for path := range want {
		got[path] = h.do(request{method: "HEAD", path: path}).status
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
