package host

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Each call of an op counts once, by how it ended: also what a grant refuses, and
// what an action calls inside the call of its own.
func TestOpsAreCounted(t *testing.T) {
	t.Parallel()
	h, _ := hostOf(t, `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "task" }
actions = ["http_get"]
[actions.http_get]
source = "bundled:http"
allow = { http = ["https://example.org"] }
`, nil)
	cas := map[string]any{"key": "c", "expect": nil, "value": "1", "scope": "task"}
	h.answer(t, "t",
		[2]any{"kv.put", map[string]any{"key": "k", "value": "1", "scope": "task"}},
		[2]any{"kv.put", map[string]any{"key": "k", "value": "1", "scope": "instance"}},
		[2]any{"kv.cas", cas}, [2]any{"kv.get", map[string]any{"key": "none", "scope": "task"}},
		[2]any{"http_get", map[string]any{"url": "http://example.com/"}},
		[2]any{"task_complete", map[string]any{"finish_message": "done"}})
	rsp, err := http.Get("http://" + h.AdminAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{op="kv.put",code="OK"} 1`, `{op="kv.put",code="DENIED"} 1`, `{op="kv.cas",code="OK"} 1`, `{op="kv.get",code="NOT_FOUND"} 1`,
		`{op="mail",code="OK"} 1`, `{op="action",code="UPSTREAM"} 1`, `{op="http.fetch",code="DENIED"} 1`,
	} {
		if !strings.Contains(string(text), "\nskep_ops_total"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}
