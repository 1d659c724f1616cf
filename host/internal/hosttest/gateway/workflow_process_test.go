package gateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// planSwarm runs plans by an agent of its own and an agent of the partner depot.
const planSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "planner"
enable_interswarm = true
[agents.planner]
source = "bundled:workflow"
comm_targets = ["boss", "clerk", "*@depot"]
enable_entrypoint = true
enable_interswarm = true
can_complete_tasks = true
allow = { kv = "task" }
expose = ["iacp"]
[agents.boss]
source = "file:script.wasm"
comm_targets = ["planner"]
enable_entrypoint = true
can_complete_tasks = true
[agents.clerk]
source = "file:script.wasm"
comm_targets = ["planner"]
allow = { kv = "task" }
[limits]
task_messages = 0
[gateways.iacp]
listen = "LISTEN"
[gateways.iacp.partners.depot]
ids = ["depot-*"]
may = ["ask", "tell", "workflows"]
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "depot"
role = "agent"
key = "a-token-of-the-realm-depot"
`

// newPlanProcess starts a host of planSwarm in a process of its own, and returns where it
// listens for IaCP.
func newPlanProcess(t *testing.T) (p *hosttest.Process, addr string) {
	t.Helper()
	p, addr = hosttest.NewProcess(t, "127.0.0.1"), hosttest.FreeAddress(t, "127.0.0.1")
	p.Launch(strings.Replace(planSwarm, "LISTEN", addr, 1))
	return p, addr
}

// workflowMessage is the body of a post that is about a workflow.
func workflowMessage(t *testing.T, kind string, payload map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"message_type": kind, "payload": payload})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// taskShown is what `skep task show` prints.
func taskShown(t *testing.T, p *hosttest.Process, task string) string {
	t.Helper()
	cmd := exec.Command(hosttest.Program(t), "task", "show", "-c", filepath.Join(p.Dir, "swarm.toml"), task)
	cmd.Env = append(os.Environ(), "SKEP_TOKEN="+hosttest.AliceKey)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("task show: %v\n%s", err, out)
	}
	return string(out)
}

// askedOf counts what clerk was asked in a task, by the bodies, until the first post has
// its answer. seen gets the number of bodies after each.
func askedOf(t *testing.T, c *client.Client, task string, seen func(n int)) map[string]int {
	t.Helper()
	asked := map[string]int{}
	for e, err := range c.Stream(t.Context(), task, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Ends() {
			break
		}
		if m, is := e.Message(); is && m.Payload.Recipient().Name == "clerk" {
			asked[m.Payload.Body]++
			seen(len(asked))
		}
	}
	return asked
}

// TestLongWorkflow (I-090, I-094, I-095): a plan of 1,000 steps goes on after the host was
// killed in its middle. Each step is asked once, the answer has all of them within its limit,
// and the task shows how many are done.
func TestLongWorkflow(t *testing.T) {
	t.Parallel()
	p, _ := newPlanProcess(t)
	c := p.ClientAs(hosttest.AliceKey)
	var steps []any
	for i := range 1000 {
		step := map[string]any{"id": fmt.Sprint("s", i), "agent_id": "clerk", "task_type": "mail.message", "parameters": map[string]any{"body": fmt.Sprint("step ", i)}}
		if i > 0 {
			step["depends_on"] = []string{fmt.Sprint("s", max(0, i-40))}
		}
		steps = append(steps, step)
	}
	post := client.Post{Task: "long", Key: "long", Body: workflowMessage(t, "workflow_start", map[string]any{"workflow_id": "w", "execution_plan": map[string]any{"steps": steps}})}
	if _, err := c.PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	asked := askedOf(t, c, post.Task, func(n int) {
		if n == 500 && p.Life == 1 {
			p.Kill()
			p.Start()
		}
	})
	if len(asked) != 1000 || p.Life != 2 {
		t.Errorf("%d steps were asked, in %d lives", len(asked), p.Life)
	}
	for body, n := range asked {
		if n > 1 {
			t.Errorf("%q was asked %d times", body, n)
		}
	}
	a, err := c.PostMessage(t.Context(), post)
	if err != nil || !strings.Contains(a.Body, `"summary":{"total":1000,"done":1000,`) || len(a.Body) > 256<<10 {
		t.Errorf("the answer has %d bytes, %.300s, %v", len(a.Body), a.Body, err)
	}
	if got := taskShown(t, p, post.Task); !strings.Contains(got, "planner: workflow w: completed, 1000 of 1000 steps\n") {
		t.Errorf("the task shows no picture: …%s", got[max(0, len(got)-600):])
	}
}

// undonePlan has the steps a and b, which claim a key each and are undone by claiming
// another, c of the partner, and d.
func undonePlan() map[string]any {
	claim := func(key string) map[string]any {
		return map[string]any{"body": hosttest.Script(hosttest.Step{"kv.cas", hosttest.Args{"key": key, "expect": nil, "value": "1", "scope": "task"}},
			hosttest.Step{"send_response", hosttest.Args{"target": "planner", "subject": "s", "body": key + " {{0}}"}})}
	}
	step := func(id, after string) map[string]any {
		s := map[string]any{"id": id, "agent_id": "clerk", "task_type": "mail.message", "parameters": claim(id),
			"compensate": map[string]any{"agent_id": "clerk", "task_type": "mail.message", "parameters": claim("undo-" + id)}}
		if after != "" {
			s["depends_on"] = []string{after}
		}
		return s
	}
	partner := step("c", "b")
	partner["agent_id"], partner["parameters"] = "depot-1@depot", map[string]any{"body": "stop here"}
	return map[string]any{"workflow_id": "w", "execution_plan": map[string]any{"steps": []any{step("a", ""), step("b", "a"), partner, step("d", "c")}}}
}

// readKind reads the next message of a type of a partner's connection.
func readKind(t *testing.T, c *iacptest.Conn, kind string) iacptest.Message {
	t.Helper()
	for {
		m, err := c.Read()
		if err != nil {
			t.Fatalf("no %s: %v", kind, err)
		}
		if m.Type == kind {
			return m
		}
	}
}

// checkUndone wants the payload of the answer to a cancelled undonePlan: what was done is
// undone, the last first, each once.
func checkUndone(t *testing.T, text string) {
	t.Helper()
	var got struct {
		Status string
		Error  struct{ Code, Message string }
		Result struct {
			State   string
			Summary struct {
				Compensated []string
				Stuck       []string `json:"compensation_failed"`
				NotRun      int      `json:"not_run"`
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	s := got.Result.Summary
	if got.Status != "failed" || got.Error.Code != "CANCELLED" || got.Result.State != "cancelled" || strings.Join(s.Compensated, " ") != "c b a" || len(s.Stuck) > 0 || s.NotRun != 1 {
		t.Errorf("the end of the workflow is %s", text)
	}
}

// TestCancelWorkflow (I-096): a workflow is cancelled while its third step is asked, over REST
// and over IaCP. The step under way ends, and what is done is undone.
func TestCancelWorkflow(t *testing.T) {
	t.Parallel()
	p, addr := newPlanProcess(t)
	c := p.ClientAs(hosttest.AliceKey)
	partner, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = partner.Close() })
	if err := partner.Send(iacptest.New("agent_register", "depot-1", "", map[string]any{"agent_info": map[string]any{"agent_id": "depot-1"}}).Text()); err != nil {
		t.Fatal(err)
	}
	readKind(t, partner, "agent_register_response")
	cancel := map[string]any{"workflow_id": "w", "reason": "enough"}

	t.Run("REST", func(t *testing.T) {
		post := client.Post{Task: "t", Key: "t", Body: workflowMessage(t, "workflow_start", undonePlan())}
		if _, err := c.PostAsync(t.Context(), post); err != nil {
			t.Fatal(err)
		}
		step := readKind(t, partner, "task_request")
		if _, err := c.PostAsync(t.Context(), client.Post{Task: "t", Body: workflowMessage(t, "workflow_cancel", cancel)}); err != nil {
			t.Fatal(err)
		}
		for e, err := range c.Stream(t.Context(), "t", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if m, is := e.Emission(); is && m.Progress != nil && strings.Contains(m.Progress.Text, "stopping") {
				break
			}
		}
		if err := partner.Send(step.Reply("task_response", map[string]any{"status": "completed", "result": "stopped"}).Text()); err != nil {
			t.Fatal(err)
		}
		a, err := c.PostMessage(t.Context(), post)
		if err != nil {
			t.Fatal(err)
		}
		checkUndone(t, a.Body)
		asked := askedOf(t, c, "t", func(int) {})
		for body, n := range asked {
			if n != 1 || len(asked) != 5 {
				t.Errorf("of %d bodies clerk got %q %d times", len(asked), body, n)
			}
		}
		if got := taskShown(t, p, "t"); !strings.Contains(got, "planner: workflow w: cancelled, 4 of 4 steps, 3 undone\n") || !strings.Contains(got, "d  not run") {
			t.Errorf("the task shows\n%s", got)
		}
	})
	t.Run("IaCP", func(t *testing.T) {
		start := iacptest.New("workflow_start", "depot-2", "planner", undonePlan())
		start.Conversation = "a-conversation"
		stop := iacptest.New("workflow_cancel", "depot-2", "planner", cancel)
		stop.Conversation = start.Conversation
		if err := partner.Send(start.Text()); err != nil {
			t.Fatal(err)
		}
		step := readKind(t, partner, "task_request")
		if err := partner.Send(stop.Text()); err != nil {
			t.Fatal(err)
		}
		if got := readKind(t, partner, "task_response"); got.Parent != stop.ID || !strings.Contains(got.Raw, `"state":"stopping"`) {
			t.Fatalf("the cancellation is answered by %s", got.Raw)
		}
		if err := partner.Send(step.Reply("task_response", map[string]any{"status": "completed", "result": "stopped"}).Text()); err != nil {
			t.Fatal(err)
		}
		got := readKind(t, partner, "task_response")
		if got.Parent != start.ID {
			t.Errorf("the end is %s", got.Raw)
		}
		raw, err := json.Marshal(got.Payload)
		if err != nil {
			t.Fatal(err)
		}
		checkUndone(t, string(raw))
	})
}
