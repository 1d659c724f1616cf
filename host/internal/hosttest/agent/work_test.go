package agent_test

import (
	"bytes"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// A failed turn and a task that waits for a person leave a line in the log and a number in
// the metrics, without any content.
func TestWorkIsSeen(t *testing.T) {
	t.Parallel()
	h, log := hosttest.StartText(t, `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
breakpoint_tools = ["help"]
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
`, nil)
	const planted = "a text that is the user's own"
	c := h.Client(t)
	for _, body := range []string{`[["trap",{}],["log",{"message":"` + planted + `"}]]`, `[["help",{}],["log",{"message":"` + planted + `"}]]`} {
		if _, err := c.PostMessage(t.Context(), client.Post{Body: body, Subject: planted}); err != nil {
			t.Log(err) // the answer of a task that failed or waits
		}
	}
	text := h.Metrics(t)
	for _, line := range []string{
		`skep_turns_total{agent="boss",exit="trap"} 1`, `skep_tasks_total{state="failed"} 1`, `skep_tasks_total{state="paused"} 1`,
		`skep_tasks_total{state="running"} 2`, `skep_messages_total{type="request"} 2`, `skep_task_duration_seconds_count{state="failed"} 1`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	for _, line := range []string{"a turn has failed", "a task has failed", "a task waits for a person"} {
		if !bytes.Contains(log.Bytes(), []byte(line)) {
			t.Errorf("the log lacks %q", line)
		}
	}
	if bytes.Contains(log.Bytes(), []byte(planted)) || strings.Contains(text, planted) {
		t.Error("the log or the metrics show content")
	}
	if t.Failed() {
		t.Logf("%s\n%s", log.Bytes(), text)
	}
}
