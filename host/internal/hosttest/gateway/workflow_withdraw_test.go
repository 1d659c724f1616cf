package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// runningPlan has a step that is done, and three that go on for long, side by side: a module that
// sleeps, an agent of the partner, and one that waits an hour to be tried again. All have a
// compensation.
func runningPlan() map[string]any {
	step := func(id, agent, body string, after ...string) map[string]any {
		undo := map[string]any{"agent_id": "porter", "task_type": "mail.message", "parameters": map[string]any{"body": "undo " + id}}
		return map[string]any{"id": id, "agent_id": agent, "task_type": "mail.message", "depends_on": after, "parameters": map[string]any{"body": body}, "compensate": undo}
	}
	again := step("again", "porter", hosttest.Script(hosttest.Step{"send_response", hosttest.Args{"target": "planner", "subject": "s", "body": `{"status":"failed"}`}}), "first")
	again["retry"] = map[string]any{"times": 3, "delay": 3600}
	return map[string]any{"workflow_id": "w", "execution_plan": map[string]any{"steps": []any{
		step("first", "porter", "one"), again, step("module", "clerk", hosttest.Script(napping()...), "first"), step("partner", "depot-1@depot", "weigh", "first"),
	}}}
}

// checkWithdrawn wants the answer to a cancelled runningPlan: what ran did not wait for its time,
// and whatever was begun is undone.
func checkWithdrawn(t *testing.T, text string) {
	t.Helper()
	var got reviewEnd
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	undone := slices.Sorted(slices.Values(got.Result.Summary.Compensated))
	if got.Error.Code != "CANCELLED" || got.Result.State != "cancelled" || !slices.Equal(undone, []string{"first", "module", "partner"}) ||
		got.Result.Steps["again"].Status != "not run" || strings.Contains(text, "TIMEOUT") {
		t.Errorf("the end of the workflow is %s", text)
	}
}

// TestWithdrawSteps (I-096): a cancellation stops what the steps under way do. A module that
// sleeps is called off, where the swarm preempts; the partner gets a workflow_cancel that names
// its message, and confirms it; a try that waits is dropped. What was begun is undone.
func TestWithdrawSteps(t *testing.T) {
	t.Parallel()
	p, addr := hosttest.NewProcess(t, "127.0.0.1"), hosttest.FreeAddress(t, "127.0.0.1")
	p.Launch(strings.NewReplacer("LISTEN", addr, "[agents.boss]", `[agents.porter]
source = "file:script.wasm"
comm_targets = ["planner"]
[agents.boss]`, `"clerk", "*@depot"`, `"clerk", "porter", "*@depot"`, "\n[agents.planner]", "\ninterrupt_mode = \"preempt\"\n[agents.planner]").Replace(planSwarm))
	c := p.ClientAs(hosttest.AliceKey)
	partner, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = partner.Close() })
	if _, err := partner.Register("depot-1"); err != nil {
		t.Fatal(err)
	}
	post := client.Post{Task: "t", Key: "t", Body: workflowMessage(t, "workflow_start", runningPlan())}
	if _, err := c.PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	step := readKind(t, partner, "task_request")
	awaitShown(t, c, "t", "again    pause")
	awaitShown(t, c, "t", "clerk sleeps")
	if _, err := c.PostAsync(t.Context(), client.Post{Task: "t", Body: workflowMessage(t, "workflow_cancel", map[string]any{"workflow_id": "w"})}); err != nil {
		t.Fatal(err)
	}
	stop := readKind(t, partner, "workflow_cancel")
	if got := stop.Payload; got["message_id"] != step.ID || got["workflow_id"] != "w" || got["step"] != "partner" || stop.Conversation != step.Conversation {
		t.Errorf("step %s in %s is withdrawn by %s", step.ID, step.Conversation, stop.Raw)
	}
	for asked, payload := range map[*iacptest.Message]map[string]any{
		&step: {"status": "failed", "error": map[string]any{"code": "CANCELLED", "message": "stopped"}}, &stop: {"status": "completed"},
	} {
		if err := partner.Send(asked.Reply("task_response", payload).Text()); err != nil {
			t.Fatal(err)
		}
	}
	a, err := c.PostMessage(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	checkWithdrawn(t, a.Body)
	checkWithdrawnID(t, c)
}

// checkWithdrawnID wants the interrupt of clerk to name the request by the id that clerk has of it.
func checkWithdrawnID(t *testing.T, c *client.Client) {
	t.Helper()
	request, named := "", ""
	for e, err := range c.Stream(t.Context(), "t", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Ends() {
			break
		}
		m, is := e.Message()
		if !is || m.Payload.Recipient().Name != "clerk" {
			continue
		}
		if m.Type == mail.Interrupt {
			_, named, _ = strings.Cut(m.Payload.Body, `"message_id":"`)
			named, _, _ = strings.Cut(named, `"`)
		} else {
			request = m.ID
		}
	}
	if request == "" || named != request {
		t.Errorf("request %q of clerk is withdrawn as %q", request, named)
	}
}
