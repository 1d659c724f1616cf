package crash_test

import (
	"encoding/json"
	"fmt"
	"maps"
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
	soak := os.Getenv("SKEP_SOAK") != ""
	killAtEach(t, p, claimingDiamond(t), 4, func(m mail.Message) bool {
		return soak || m.Type == mail.Request && m.Payload.Sender.Name == "flow"
	}, checkClaims)
}

// killAtEach runs a workflow once for each message that at picks, and kills the host when the
// message is there. check looks at each end. There must be least messages or more.
func killAtEach(t *testing.T, p *hosttest.Process, body string, least int, at func(mail.Message) bool, check func(*testing.T, *client.Client, client.Post)) {
	t.Helper()
	c, places := p.Client(), 0
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
			if m, isMessage := e.Message(); !isMessage || !at(m) {
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
		check(t, c, post)
	}
	if kills := p.Life - 1; kills < least || kills != places {
		t.Errorf("%d kills at %d places, at least %d", kills, places, least)
	}
}

// failingPlan has four steps, of which the last fails. The first two are undone, the third one's
// compensation fails twice.
func failingPlan(t *testing.T) string {
	t.Helper()
	claim := func(key, then string) map[string]any {
		return map[string]any{"body": hosttest.Script(hosttest.Step{"kv.cas", hosttest.Args{"key": key, "expect": nil, "value": "1", "scope": "task"}},
			hosttest.Step{"send_response", hosttest.Args{"target": "flow", "subject": "Re: s", "body": then}})}
	}
	step := func(agent string, parameters map[string]any) map[string]any {
		return map[string]any{"agent_id": agent, "task_type": "mail.message", "parameters": parameters}
	}
	var steps []any
	for _, agent := range []string{"first", "left"} {
		s := step(agent, claim("do", "do {{0}}"))
		s["id"], s["compensate"] = agent, step(agent, claim("undo", "undo {{0}}"))
		steps = append(steps, s)
	}
	stuck := step("right", claim("do", "do {{0}}"))
	undo := step("right", claim("undo", `{"status":"failed","error":"stuck"}`))
	undo["retries"] = 1
	stuck["id"], stuck["compensate"] = "right", undo
	last := step("last", claim("do", `{"status":"failed","error":"no"}`))
	last["id"] = "last"
	raw, err := json.Marshal(map[string]any{"message_type": "workflow_start", "payload": map[string]any{
		"workflow_id": "w", "execution_plan": map[string]any{"mode": "sequential", "steps": append(steps, stuck, last)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestKillCompensation (I-096): the host is killed at every message of a compensation. It goes
// on where it was: the steps that were done are undone once, the last first, and one whose
// compensation fails is tried as often as its plan has it.
func TestKillCompensation(t *testing.T) {
	t.Parallel()
	p := hosttest.StartProcess(t, workflowSwarm)
	// The requests and answers of the two that are undone, and two tries of the third.
	killAtEach(t, p, failingPlan(t), 8, func(m mail.Message) bool {
		return strings.Contains(m.Payload.Body, "undo") && m.Payload.Recipient().Type == mail.Agent || strings.Contains(m.Payload.Body, "stuck") && m.Type == mail.Response
	}, checkUndone)
}

// checkUndone wants the steps of failingPlan to be done and undone once, but for the tries of
// the third.
func checkUndone(t *testing.T, c *client.Client, post client.Post) {
	t.Helper()
	a, err := c.PostMessage(t.Context(), post) // a repeat, which has the answer
	if err != nil || !strings.Contains(a.Body, `"compensated":["left","first"],"compensation_failed":["right"]`) {
		t.Errorf("%s: %s, %v", post.Task, a.Body, err)
	}
	said := map[string]int{}
	for e, err := range c.Stream(t.Context(), post.Task, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m, is := e.Message(); is && m.Type == mail.Response && m.Payload.Sender.Type == mail.Agent {
			said[m.Payload.Sender.Name+": "+m.Payload.Body]++
		}
		if e.Ends() {
			break
		}
	}
	want := map[string]int{
		`first: do {"ok":true}`: 1, `left: do {"ok":true}`: 1, `right: do {"ok":true}`: 1, `last: {"status":"failed","error":"no"}`: 1,
		`first: undo {"ok":true}`: 1, `left: undo {"ok":true}`: 1, `right: {"status":"failed","error":"stuck"}`: 2,
	}
	if !maps.Equal(said, want) {
		t.Errorf("%s: the agents answered %v", post.Task, said)
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
