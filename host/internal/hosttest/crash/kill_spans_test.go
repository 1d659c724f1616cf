package crash_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

const spanSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["http_get"]
allow = { llm = ["default"], http = ["%[1]s"], http_private = true }
[actions.http_get]
source = "bundled:http"
allow = { http = ["%[1]s"], http_private = true }
[models.default]
provider = "openai"
base_url = "%[1]s/v1"
model = "bee-1"
allow_private = true
[[auth.keys]]
id = "crash"
role = "user"
key = "%[3]s"
[telemetry]
endpoint = "%[2]s"
`

// A turn that has called a model and an action when its host is killed, and runs again after
// the start, is told once with its calls.
func TestKillSpans(t *testing.T) {
	t.Parallel()
	collector, held := hosttest.StartCollector(t), make(chan struct{}, 1)
	var chats atomic.Int64
	free := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/chat/completions":
			chats.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"id":"1","object":"chat.completion","created":1,"model":"bee-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"yes"}}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`))
		case "/held":
			select {
			case held <- struct{}{}:
			default:
			}
			select {
			case <-free:
			case <-r.Context().Done():
			}
		}
	}))
	defer web.Close()
	p := hosttest.StartProcess(t, fmt.Sprintf(spanSwarm, web.URL, collector.URL, hosttest.ScriptKey))
	c := p.Client()
	body := hosttest.Script(
		hosttest.ChatStep("default"), hosttest.Step{"http_get", hosttest.Args{"url": web.URL + "/look"}},
		hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": web.URL + "/held"}},
		hosttest.Step{"task_complete", hosttest.Args{"finish_message": "{{0}}"}},
	)
	if _, err := c.PostAsync(t.Context(), client.Post{Task: "t", Body: body}); err != nil {
		t.Fatal(err)
	}
	<-held
	p.Kill()
	close(free)
	p.Start()
	count := map[string]int{}
	spans := collector.Wait(t, "invoke_workflow hive", 1)
	for _, s := range spans {
		count[s.Name]++
		if s.Failed || s.Trace != spans[0].Trace {
			t.Errorf("%+v", s)
		}
	}
	want := map[string]int{"invoke_workflow hive": 1, "invoke_agent boss": 1, "chat bee-1": 1, "execute_tool http_get": 1}
	if fmt.Sprint(count) != fmt.Sprint(want) || chats.Load() != 1 {
		t.Fatalf("%v, want %v; the model was called %d times", count, want, chats.Load())
	}
	chat := hosttest.Named(spans, "chat bee-1")[0]
	if chat.Attributes["gen_ai.usage.input_tokens"] != "7" || chat.Attributes["gen_ai.usage.output_tokens"] != "3" || chat.Attributes["gen_ai.provider.name"] != "openai" {
		t.Errorf("%+v", chat)
	}
}
