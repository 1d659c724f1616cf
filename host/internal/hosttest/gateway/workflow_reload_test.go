package gateway_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// operatedSwarm is planSwarm with an operator, and with alice as a user of the tenant acme, too.
const operatedSwarm = planSwarm + `[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator-of-all"
[tenants.acme]
[[auth.keys]]
id = "alice"
role = "user"
tenant = "acme"
key = "a-key-of-acme-the-tenant"
`

// sayStep is a step of clerk that answers with a text.
func sayStep(id, text string) map[string]any {
	return scriptStep(id, hosttest.Step{"send_response", hosttest.Args{"target": "planner", "subject": "s", "body": text}})
}

// scriptStep is a step of clerk that runs a script.
func scriptStep(id string, steps ...hosttest.Step) map[string]any {
	s := map[string]any{"agent_id": "clerk", "task_type": "mail.message", "parameters": map[string]any{"body": hosttest.Script(steps...)}}
	if id != "" {
		s["id"] = id
	}
	return s
}

// napping is a script that sleeps for long. A reader sees only what is shown after it came.
func napping() (naps []hosttest.Step) {
	for range 500 {
		naps = append(naps, hosttest.Step{"emit", hosttest.Args{"note": "clerk sleeps"}}, hosttest.Step{"sleep", hosttest.Args{"ms": 1000}})
	}
	return naps
}

// awaitShown reads the events of a task until an agent shows a text.
func awaitShown(t *testing.T, c *client.Client, task, text string) {
	t.Helper()
	for e, err := range c.Stream(t.Context(), task, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m, is := e.Emission(); is && (strings.Contains(m.Text, text) || m.Progress != nil && strings.Contains(m.Progress.Text, text)) {
			return
		}
	}
	t.Fatalf("task %s has ended before %q", task, text)
}

// TestReloadWorkflow: the file is changed and read again while a step of a workflow is asked,
// between two steps, and while a step is undone. The workflow ends by the file with which it has
// begun, whose agent is in the file no more, and each step is asked once.
func TestReloadWorkflow(t *testing.T) {
	t.Parallel()
	p, addr := hosttest.NewProcess(t, "127.0.0.1"), hosttest.FreeAddress(t, "127.0.0.1")
	swarm := strings.Replace(operatedSwarm, "LISTEN", addr, 1)
	p.Launch(swarm)
	c, op := p.ClientAs(hosttest.AliceKey), p.ClientAs("a-key-of-the-operator-of-all")
	partner, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = partner.Close() })
	if _, err := partner.Register("depot-1"); err != nil {
		t.Fatal(err)
	}
	reload := func(changed string) {
		t.Helper()
		p.Write(changed)
		if _, err := op.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(asked iacptest.Message, payload map[string]any) {
		t.Helper()
		if err := partner.Send(asked.Reply("task_response", payload).Text()); err != nil {
			t.Fatal(err)
		}
	}
	plan := undonePlan() // a, b, c of the partner, d
	steps := plan["execution_plan"].(map[string]any)["steps"].([]any)
	fails := sayStep("d", `{"status":"failed","error":{"code":"E7","message":"no"}}`)
	fails["depends_on"], fails["retry"] = []string{"c"}, map[string]any{"times": 1, "delay": 3}
	undo := map[string]any{"agent_id": "depot-1@depot", "task_type": "undo"}
	steps[2].(map[string]any)["compensate"], steps[3] = undo, fails
	post := client.Post{Task: "t", Key: "t", Body: workflowMessage(t, "workflow_start", plan)}
	if _, err := c.PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	step := readKind(t, partner, "task_request")
	reload(strings.NewReplacer("[agents.clerk]", "[agents.scribe]", `"clerk"`, `"scribe"`).Replace(swarm))
	answer(step, map[string]any{"status": "completed", "result": 1})
	awaitShown(t, c, "t", "d  pause")
	reload(swarm)
	undoing := readKind(t, partner, "task_request")
	reload(strings.Replace(swarm, `"boss", "clerk", "*@depot"`, `"boss"`, 1))
	answer(undoing, map[string]any{"status": "completed"})
	a, err := c.PostMessage(t.Context(), post)
	if err != nil || !strings.Contains(a.Body, `"code":"E7"`) || !strings.Contains(a.Body, `"compensated":["c","b","a"]`) {
		t.Errorf("the workflow ends with %s, %v", a.Body, err)
	}
	asked := askedOf(t, c, "t", func(int) {})
	for body, n := range asked {
		if want := 1 + strings.Count(body, "E7"); n != want || len(asked) != 5 {
			t.Errorf("of %d bodies clerk got %q %d times, want %d", len(asked), body, n, want)
		}
	}
	got, err := c.PostMessage(t.Context(), client.Post{Task: "new", Body: post.Body})
	if err != nil || !strings.Contains(got.Body, `"clerk\" is not in the comm_targets`) {
		t.Errorf("a new workflow is answered with %s, %v", got.Body, err)
	}
}

// tenantRows counts what a store has of the tasks of tenants, by table.
func tenantRows(t *testing.T, data string) map[string]int {
	t.Helper()
	hosttest.SkipOnServer(t, "it reads or changes the database of a file")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "skep.db")+"?_busy_timeout=5000&mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows := map[string]int{}
	for _, table := range []string{"tasks", "queue", "events", "agents", "history", "submissions", "turns", "journal", "kv", "outbox", "blobs", "blob_uses"} {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			rows[table] = n
		}
	}
	return rows
}

// TestEraseWorkflows: a tenant is erased while one of its workflows asks a step, one waits between
// two tries, and one undoes a step. Nothing is left of them, also after a kill, and a workflow of
// the same name begins anew.
func TestEraseWorkflows(t *testing.T) {
	t.Parallel()
	p, addr := hosttest.NewProcess(t, "127.0.0.1"), hosttest.FreeAddress(t, "127.0.0.1")
	p.Launch(strings.Replace(operatedSwarm, "LISTEN", addr, 1))
	const tenant = "a-key-of-acme-the-tenant"
	c, op := p.ClientAs(tenant), p.ClientAs("a-key-of-the-operator-of-all")
	const failure = `{"status":"failed","error":"no"}`
	pauses := sayStep("last", failure)
	pauses["retry"] = map[string]any{"times": 3, "delay": 3600}
	plans := map[string]map[string]any{"clerk sleeps": scriptStep("last", napping()...), "last   pause": pauses, "first  undoing": sayStep("last", failure)}
	start := func(at string) client.Post {
		first, last := sayStep("first", strings.Repeat("long ", 2000)), plans[at]
		first["compensate"], last["depends_on"] = scriptStep("", napping()...), []string{"first"}
		plan := map[string]any{"workflow_id": "w", "execution_plan": map[string]any{"steps": []any{first, last}}}
		return client.Post{Task: at, Key: at, Body: workflowMessage(t, "workflow_start", plan)}
	}
	for at := range plans {
		if _, err := c.PostAsync(t.Context(), start(at)); err != nil {
			t.Fatal(err)
		}
		awaitShown(t, c, at, at)
	}
	before := tenantRows(t, p.Data())
	if err := op.EraseTenant(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	left := tenantRows(t, p.Data())
	p.Kill()
	p.Start()
	c = p.ClientAs(tenant)
	if after := tenantRows(t, p.Data()); len(left)+len(after) > 0 || before["tasks"] != len(plans) || before["blobs"] == 0 || before["kv"] == 0 {
		t.Errorf("the store had %v, has %v after the erasure and %v after a kill", before, left, after)
	}
	const again = "last   pause"
	if _, err := c.PostAsync(t.Context(), start(again)); err != nil {
		t.Fatal(err)
	}
	awaitShown(t, c, again, again)
	if n := tenantRows(t, p.Data())["tasks"]; n != 1 {
		t.Errorf("a new workflow makes %d tasks", n)
	}
}
