package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// strangersSwarm has the three bundled agents without a model for the agents of a partner.
const strangersSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "planner"
enable_interswarm = true
[agents.planner]
source = "bundled:workflow"
comm_targets = ["archive"]
enable_entrypoint = true
enable_interswarm = true
can_complete_tasks = true
allow = { kv = "task" }
expose = ["iacp"]
[agents.archive]
source = "bundled:knowledge"
comm_targets = ["planner"]
enable_interswarm = true
allow = { kv = "agent" }
expose = ["iacp"]
[agents.files]
source = "bundled:tool"
comm_targets = ["planner"]
enable_interswarm = true
actions = ["read_file"]
expose = ["iacp"]
[actions.read_file]
source = "builtin:fs/read_file"
root = "notes"
[gateways.iacp]
listen = "LISTEN"
[gateways.iacp.partners.depot]
ids = ["depot-*"]
may = ["ask", "tell", "workflows", "tools"]
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "depot"
role = "agent"
key = "a-token-of-the-realm-depot"
`

// hostileBodies are bodies for each agent that are too long, too deep, too many or no numbers.
// More than five of them would open a breaker, if they failed turns.
func hostileBodies() map[string][]string {
	long, control, digits := strings.Repeat("x", 200<<10), strings.Repeat(`\u0001`, 30<<10), strings.Repeat("9", 200<<10)
	deep := strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000)
	names := strings.TrimSuffix(strings.Repeat(`"",`, 70_000), ",")
	start := func(plan string) string { return `{"message_type":"workflow_start","payload":` + plan + `}` }
	one := func(more string) string {
		return start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"s","agent_id":"archive","task_type":"x"` + more + `}]}}`)
	}
	var members []string // many participants with as many duties, which each step is held against
	for i := range 30_000 {
		members = append(members, fmt.Sprint(`"`, i, `"`))
	}
	var steps []string
	for i := range 900 {
		steps = append(steps, fmt.Sprintf(`{"id":"a%d","task_type":"y"}`, i))
	}
	update := func(more string) string {
		return `{"message_type":"knowledge_update","payload":{"update_type":"learned","knowledge_domain":"d"` + more + `}}`
	}
	query := func(payload string) string { return `{"message_type":"knowledge_query","payload":` + payload + `}` }
	run := func(more string) string { return `{"tool":"read_file"` + more + `}` }
	common := []string{"", "null", long, deep, digits, `{"message_type":"` + long + `"}`, `{"message_type":"` + control + `"}`, `{"message_type":` + digits + `}`, `{"payload":` + deep + `}`, "[" + names + "]"}
	return map[string][]string{
		"planner": append([]string{
			start(`{"workflow_id":"` + long[:90_000] + `","execution_plan":{"steps":[{"id":"s","agent_id":"archive","task_type":"x"}]}}`),
			start(`{"workflow_id":"w","workflow_name":"` + control + `","execution_plan":{"steps":[{"id":"s","agent_id":"archive","task_type":"x"}]}}`),
			one(`,"` + control + `":1`), one(`,"inputs":{"` + long + `":"${x}"}`), one(`,"timeout":1e400`), one(`,"timeout":` + digits),
			one(`,"parameters":{"n":1e400}`), one(`,"when":"` + strings.Repeat("not ", 250) + `"`), one(`,"role":"` + long + `"`), one(`,"depends_on":[` + names + `]`),
			one(`,"agent_id":"` + long + `@depot"`), one(`,"parameters":` + deep), one(`,"retry":{"times":1e18,"delay":1e300}`),
			start(`{"workflow_id":"w","execution_plan":{"steps":[` + names + `]}}`),
			start(`{"workflow_id":"w","participants":[` + strings.TrimSuffix(strings.Repeat(`{},`, 80_000), ",") + `],"execution_plan":{"steps":[{"id":"s"}]}}`),
			start(`{"workflow_id":"w","participants":[{"agent_id":"archive","responsibilities":[` + strings.Join(members, ",") + `]}],"execution_plan":{"steps":[` + strings.Join(steps, ",") + `]}}`),
			start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"s","agent_id":"archive","task_type":"x"}],"dependencies":[` + names + `]}}`),
			`{"message_type":"workflow_status","payload":{"workflow_id":"` + control + `"}}`, `{"message_type":"workflow_cancel","payload":{"workflow_id":"w","reason":"` + control + `"}}`,
		}, common...),
		"archive": append([]string{
			query(`{"knowledge_domain":"` + long + `"}`), query(`{"after":"` + long + `"}`), query(`{"text":"` + control + `"}`), query(`{"tags":[` + names + `]}`), query(`{"limit":1e400}`),
			query(`{"min_confidence":` + digits + `}`), update(`,"content":{"facts":[1e400]}`), update(`,"content":{"facts":[` + digits + `]}`), update(`,"content":{"facts":[` + deep + `]}`),
			update(`,"content":{"facts":[` + names + `]}`), update(`,"content":{"facts":[{"id":"` + control + `"}]}`), update(`,"content":{"facts":["` + long + `"]}`),
			update(`,"content":{"facts":[{"id":` + digits + `}]}`), update(`,"tags":[` + names + `],"content":{"facts":["x"]}`), update(`,"scope":"` + control + `","content":{"facts":["x"]}`),
			`{"message_type":"context_share","payload":{"context_type":"` + long + `","data":1}}`, `{"message_type":"context_share","payload":{"context_type":"c","data":` + digits + `}}`,
		}, common...),
		"files": append([]string{
			run(`,"parameters":{"path":"` + long + `"}`), run(`,"parameters":` + deep), run(`,"parameters":{"path":1e400}`), run(`,"parameters":{"path":` + digits + `}`),
			run(`,"execution_context":{"permissions":[` + names + `]}`), run(`,"execution_context":{"permissions":["` + control + `"]}`), run(`,"callback_required":` + digits),
			`{"tool":"` + long + `"}`, `{"tool":"` + control + `"}`, `{"tool_name":"read_file","tool":"` + long + `"}`, `{"message_type":"tool_request","payload":` + deep + `}`,
		}, common...),
	}
}

// TestHostileInputs (I-034, I-075, I-090, I-093): what a stranger sends to the bundled agents has an
// answer from the agent, with a reason; it fails no turn, so that no breaker opens, and what others
// ask is answered after it.
func TestHostileInputs(t *testing.T) {
	t.Parallel()
	p, addr := hosttest.NewProcess(t, "127.0.0.1"), hosttest.FreeAddress(t, "127.0.0.1")
	if err := os.Mkdir(filepath.Join(p.Dir, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.Launch(strings.Replace(strangersSwarm, "LISTEN", addr, 1))
	p.ClientAs(hosttest.AliceKey) // it serves
	for agent, bodies := range hostileBodies() {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			depot, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = depot.Close() })
			ask := func(body string) string {
				t.Helper()
				m := iacptest.New("task_request", "depot-"+agent, agent, map[string]any{
					"task_type": "mail.message", "parameters": map[string]any{"subject": strings.Repeat("s", 3000), "body": body},
				})
				if err := depot.Send(m.Text()); err != nil {
					t.Fatal(err)
				}
				for {
					got, err := depot.Read()
					if err != nil {
						t.Fatal(err)
					}
					if got.Parent == m.ID && got.Type != "acknowledgment" {
						return got.Type + " " + got.Raw
					}
				}
			}
			for _, body := range bodies {
				got := ask(body)
				if !strings.HasPrefix(got, "task_response ") || !strings.Contains(got, `"rejected"`) && !strings.Contains(got, `"error"`) || len(got) > 64<<10 {
					t.Errorf("%.120s has the answer %.600s", body, got)
				}
			}
			good := map[string]string{
				"planner": `{"message_type":"workflow_start","payload":{"workflow_id":"w","execution_plan":{"steps":[{"id":"s","agent_id":"archive","task_type":"mail.message","parameters":{"body":{"message_type":"knowledge_query","payload":{}}}}]}}}`,
				"archive": `{"message_type":"knowledge_query","payload":{}}`,
				"files":   `{"tool":"read_file","parameters":{"path":"none"}}`,
			}
			if got := ask(good[agent]); !strings.Contains(got, `"statements":[`) && !strings.Contains(got, "none") {
				t.Errorf("after it %s answers %s", agent, got)
			}
		})
	}
}
