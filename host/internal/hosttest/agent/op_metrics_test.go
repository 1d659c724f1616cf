package agent_test

import (
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// Each call of an op counts once, by how it ended: also what a grant refuses, and
// what an action calls inside the call of its own.
func TestOpsAreCounted(t *testing.T) {
	t.Parallel()
	h, _ := hosttest.StartText(t, `schema = 1
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
	cas := hosttest.Args{"key": "c", "expect": nil, "value": "1", "scope": "task"}
	h.Answer(t, "t",
		hosttest.Step{"kv.put", hosttest.Args{"key": "k", "value": "1", "scope": "task"}},
		hosttest.Step{"kv.put", hosttest.Args{"key": "k", "value": "1", "scope": "instance"}},
		hosttest.Step{"kv.cas", cas}, hosttest.Step{"kv.get", hosttest.Args{"key": "none", "scope": "task"}},
		hosttest.Step{"http_get", hosttest.Args{"url": "http://example.com/"}},
		hosttest.Step{"task_complete", hosttest.Args{"finish_message": "done"}})
	text := h.Metrics(t)
	for _, want := range []string{
		`{op="kv.put",code="OK"} 1`, `{op="kv.put",code="DENIED"} 1`, `{op="kv.cas",code="OK"} 1`, `{op="kv.get",code="NOT_FOUND"} 1`,
		`{op="mail",code="OK"} 1`, `{op="action",code="UPSTREAM"} 1`, `{op="http.fetch",code="DENIED"} 1`,
	} {
		if !strings.Contains(text, "\nskep_ops_total"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}
