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
		`{code="OK",op="kv.put"} 1`, `{code="DENIED",op="kv.put"} 1`, `{code="OK",op="kv.cas"} 1`, `{code="NOT_FOUND",op="kv.get"} 1`,
		`{code="OK",op="mail"} 1`, `{code="UPSTREAM",op="action"} 1`, `{code="DENIED",op="http.fetch"} 1`,
	} {
		if !strings.Contains(text, "\nskep_ops_total"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}
