package gateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/iacp/iacptest/peers"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// reviewSwarm has the document's agents for the analysis of code: two modules and a program
// in Python. The fourth is an agent of the partner depot, and office asks for the analysis.
const reviewSwarm = `schema = 1
[swarm]
name = "review"
entrypoint = "coordinator"
enable_interswarm = true
[agents.coordinator]
source = "bundled:workflow"
comm_targets = ["parser", "security", "documentation", "*@depot"]
enable_interswarm = true
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "task" }
expose = ["iacp"]
[agents.parser]
source = "file:inspector.wasm"
comm_targets = ["coordinator"]
[agents.security]
source = "exec:security"
trusted = true
readable = READABLE
comm_targets = ["coordinator"]
[agents.documentation]
source = "file:inspector.wasm"
comm_targets = ["coordinator"]
[gateways.iacp]
listen = "LISTEN"
[gateways.iacp.partners.depot]
ids = ["depot-*"]
[gateways.iacp.partners.office]
ids = ["office-*"]
may = ["ask", "workflows"]
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "depot"
role = "agent"
key = "a-token-of-the-realm-depot"
[[auth.keys]]
id = "office"
role = "agent"
key = "a-token-of-the-realm-office"
`

// newReview starts a host of reviewSwarm in a process of its own, the peer in Python that is
// its partner depot, and a connection of office.
func newReview(t *testing.T) (spoke *peers.Peer, office *iacptest.Conn) {
	t.Helper()
	python, readable := guests.Python(t)
	if python == "" {
		t.Skip("no Python with the libraries for agents; make python makes one")
	}
	p, addr := hosttest.NewProcess(t, "127.0.0.1"), hosttest.FreeAddress(t, "127.0.0.1")
	root := guests.Root()
	build := exec.Command(python, filepath.Join(root, "sdk/python/build.py"), filepath.Join(root, "examples/workflow/python/agent.py"), filepath.Join(p.Dir, "security"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "inspector.wasm"), guests.Bytes(t, "examples/workflow/inspector"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(readable)
	if err != nil {
		t.Fatal(err)
	}
	p.Launch(strings.NewReplacer("LISTEN", addr, "READABLE", string(list)).Replace(reviewSwarm))
	p.ClientAs(hosttest.AliceKey)
	spoke = peers.Start(t, "spoke", "--connect", addr, "--agent-id", "depot-1", "--backoff", "0.2", "--api-key", "a-token-of-the-realm-depot")
	spoke.Next(t, "registered")
	if office, err = iacptest.Dial(addr, "a-token-of-the-realm-office"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = office.Close() })
	if _, err := office.Register("office-1"); err != nil {
		t.Fatal(err)
	}
	return spoke, office
}

// reviewPlan is the plan of the document's analysis. The partner holds its step until the
// test releases it. Every step but the report is undone by its agent.
func reviewPlan() map[string]any {
	const code = "def f(x):\n  for y in x:\n    eval(y)"
	step := func(id, agent, kind string, after ...string) map[string]any {
		return map[string]any{"id": id, "agent_id": agent, "task_type": kind, "depends_on": after, "parameters": map[string]any{"code": code, "loops": 1}}
	}
	steps := []any{
		step("parse", "parser", "extract_structure"), step("security", "security", "security_analysis", "parse"),
		step("performance", "depot-1@depot", "hold", "parse"), step("report", "documentation", "summary_report", "parse", "security", "performance"),
	}
	for i, undo := range []map[string]any{step("", "parser", "extract_structure"), step("", "security", "security_analysis"), step("", "depot-1@depot", "echo")} {
		delete(undo, "id")
		delete(undo, "depends_on")
		steps[i].(map[string]any)["compensate"] = undo
	}
	steps[3].(map[string]any)["inputs"] = map[string]any{"parse": "${steps.parse.result}", "security": "${steps.security.result}", "performance": "${steps.performance.result.parameters}"}
	participant := func(id, role string, does ...string) map[string]any {
		return map[string]any{"agent_id": id, "role": role, "responsibilities": does}
	}
	return map[string]any{
		"workflow_id": "review", "workflow_name": "code analysis", "description": "Analyze the code.",
		"participants": []any{
			participant("coordinator", "coordinator", "combine"), participant("parser", "specialist", "structure and syntax"),
			participant("security", "specialist", "security analysis"), participant("depot-1@depot", "specialist", "performance analysis"),
			participant("documentation", "worker", "summary report"),
		},
		"execution_plan": map[string]any{"steps": steps},
	}
}

// reviewEnd is the payload of an answer about a workflow.
type reviewEnd struct {
	Status string `json:"status"`
	Error  struct{ Code string }
	Result struct {
		State string
		Steps map[string]struct {
			Status string
			Result any
		}
		Summary struct {
			Done        int
			NotRun      int `json:"not_run"`
			Compensated []string
		}
	}
}

// control sends a message about the workflow of a conversation, and returns the answer to it.
func control(t *testing.T, c *iacptest.Conn, kind, conversation string, payload map[string]any) reviewEnd {
	t.Helper()
	m := iacptest.New(kind, "office-1", "coordinator", payload)
	m.Conversation = conversation
	if err := c.Send(m.Text()); err != nil {
		t.Fatal(err)
	}
	return endOf(t, readKind(t, c, "task_response"), m)
}

// endOf reads the answer to a message.
func endOf(t *testing.T, got, asked iacptest.Message) (e reviewEnd) {
	t.Helper()
	if got.Parent != asked.ID {
		t.Fatalf("the answer to a %s is %s", asked.Type, got.Raw)
	}
	raw, err := json.Marshal(got.Payload)
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err != nil {
		t.Fatalf("%s: %v", got.Raw, err)
	}
	return e
}

// TestDocumentWorkflow (I-039, I-090, I-095, I-096, I-097): the document's analysis of code, started
// over IaCP, is done by modules, a program in Python and an agent of a partner, which was
// written from the document. Its state is asked while the partner works; a second one is
// cancelled there, and each of the three undoes what it has done.
func TestDocumentWorkflow(t *testing.T) {
	t.Parallel()
	spoke, office := newReview(t)
	for _, cancelled := range []bool{false, true} {
		start := iacptest.New("workflow_start", "office-1", "coordinator", reviewPlan())
		start.Conversation = fmt.Sprint("cancelled: ", cancelled)
		if err := office.Send(start.Text()); err != nil {
			t.Fatal(err)
		}
		spoke.Next(t, "took") // the performance analysis
		id := map[string]any{"workflow_id": "review"}
		var now reviewEnd
		hosttest.Eventually(t, "the security analysis is done", func() bool {
			now = control(t, office, "workflow_status", start.Conversation, id)
			return now.Result.Summary.Done == 2
		})
		if now.Status != "completed" || now.Result.State != "running" {
			t.Errorf("in the middle the workflow is %+v", now)
		}
		if cancelled {
			if got := control(t, office, "workflow_cancel", start.Conversation, id); got.Status != "completed" || got.Result.State != "stopping" {
				t.Errorf("the cancellation is answered by %+v", got)
			}
			if took, _ := spoke.Next(t, "took")["message"].(map[string]any); took["message_type"] != "workflow_cancel" {
				t.Errorf("the performance analysis is withdrawn by %v", took)
			}
		}
		spoke.Do(t, `{"release":true}`)
		end := endOf(t, readKind(t, office, "task_response"), start)
		if cancelled {
			spoke.Next(t, "took") // its compensation
			if s := end.Result.Summary; end.Status != "failed" || end.Error.Code != "CANCELLED" || end.Result.State != "cancelled" || s.NotRun != 1 ||
				!slices.Equal(s.Compensated, []string{"performance", "security", "parse"}) {
				t.Errorf("the cancelled workflow ends with %+v", end)
			}
			continue
		}
		raw, err := json.Marshal(end.Result.Steps)
		if err != nil || end.Status != "completed" || end.Result.Steps["report"].Result != "1 functions, 1 findings, 1 loops" || !strings.Contains(string(raw), `"by":"Python"`) {
			t.Errorf("the workflow ends with %+v, %v", end, err)
		}
	}
}
