package crash_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// workflowSwarm runs plans for its user, with four agents that do as their mail says.
const workflowSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "flow"
[agents.flow]
source = "bundled:workflow"
comm_targets = ["first", "left", "right", "last"]
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "task" }
[agents.first]
source = "file:script.wasm"
comm_targets = ["flow"]
allow = { kv = "task" }
[agents.left]
source = "file:script.wasm"
comm_targets = ["flow"]
allow = { kv = "task" }
[agents.right]
source = "file:script.wasm"
comm_targets = ["flow"]
allow = { kv = "task" }
[agents.last]
source = "file:script.wasm"
comm_targets = ["flow"]
allow = { kv = "task" }
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// claimingDiamond is a plan of four steps, the two in the middle side by side. Each claims
// a key at once: a step that were done twice would find it taken.
func claimingDiamond(t *testing.T) string {
	t.Helper()
	var steps []any
	for name, after := range map[string][]string{"first": nil, "left": {"first"}, "right": {"first"}, "last": {"left", "right"}} {
		script := hosttest.Script(hosttest.Step{"kv.cas", hosttest.Args{"key": "once", "expect": nil, "value": "1", "scope": "task"}},
			hosttest.Step{"sleep", hosttest.Args{"ms": 20}}, hosttest.Step{"send_response", hosttest.Args{"target": "flow", "subject": "Re: s", "body": "{{0}}"}})
		steps = append(steps, map[string]any{
			"id": name, "agent_id": name, "task_type": "mail.message", "depends_on": after, "parameters": map[string]any{"body": script},
		})
	}
	raw, err := json.Marshal(map[string]any{"message_type": "workflow_start", "payload": map[string]any{
		"workflow_id": "w", "execution_plan": map[string]any{"steps": steps},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestKillWorkflow (V-I37, I-094): the host is killed when a step of a diamond has begun,
// each step in a task of its own, in the long form at every message. The workflow goes on
// where it was, and every step has its effect once.
func TestKillWorkflow(t *testing.T) {
	t.Parallel()
	p := hosttest.StartProcess(t, workflowSwarm)
	c, body := p.Client(), claimingDiamond(t)
	places, soak := 0, os.Getenv("SKEP_SOAK") != ""
	for kill := 0; kill <= places; kill++ { // not at all at first
		task := fmt.Sprint("killed at ", kill)
		post := client.Post{Task: task, Key: "key-" + task, Body: body}
		if _, err := c.PostAsync(t.Context(), post); err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range c.Stream(t.Context(), task, 0) {
			if err != nil {
				t.Fatalf("%s: %v", task, err)
			}
			if e.Ends() {
				break
			}
			m, isMessage := e.Message()
			if !isMessage || !soak && (m.Type != mail.Request || m.Payload.Sender.Name != "flow") {
				continue
			}
			if n++; n == kill {
				p.Kill()
				p.Start()
			}
		}
		if kill == 0 {
			places = n
		}
		checkClaims(t, c, post)
	}
	if kills := p.Life - 1; kills < 4 || kills != places {
		t.Errorf("%d kills at %d places, at least one for each step", kills, places)
	}
}

// checkClaims wants each step of a diamond to have claimed its key, and no agent to have
// got a message twice.
func checkClaims(t *testing.T, c *client.Client, post client.Post) {
	t.Helper()
	a, err := c.PostMessage(t.Context(), post) // a repeat, which has the answer
	if err != nil || strings.Count(a.Body, `"result":{"ok":true}`) != 4 || !strings.Contains(a.Body, `"status":"completed"`) {
		t.Errorf("%s: %s, %v", post.Task, a.Body, err)
	}
	for _, agent := range []string{"flow", "first", "left", "right", "last"} {
		h, err := c.History(t.Context(), post.Task, agent, 0, 200)
		if err == nil {
			err = checkDuplicates(h.Entries)
		}
		if err != nil {
			t.Errorf("%s: history of %s: %v", post.Task, agent, err)
		}
	}
	task, err := c.Task(t.Context(), post.Task)
	if err != nil || task.State != "completed" {
		t.Errorf("%s: state %q, %v", post.Task, task.State, err)
	}
}
