package gateway_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// startedPlan has a step with the result of another, one that is skipped, and one that fails,
// upon which the others are undone: all that a plan has, one after the other.
func startedPlan() map[string]any {
	step := func(id, body string) map[string]any {
		return map[string]any{"id": id, "agent_id": "clerk", "task_type": "mail.message", "parameters": map[string]any{"body": body}}
	}
	first, second, skipped, last := step("first", "one"), step("second", "two after ${steps.first.result}"), step("skipped", "never"), step("last", hosttest.Script(
		hosttest.Step{"send_response", hosttest.Args{"target": "planner", "subject": "s", "body": `{"status":"failed","error":{"code":"E7","message":"no"}}`}}))
	undo := step("", "undo of ${steps.second.result}")
	delete(undo, "id")
	second["compensate"], skipped["when"] = undo, "${steps.first.status} == 'failed'"
	return map[string]any{"workflow_id": "w", "workflow_name": "errands", "execution_plan": map[string]any{"mode": "sequential", "steps": []any{first, second, skipped, last}}}
}

// stepTimes are the times of steps under way in a picture.
var stepTimes = regexp.MustCompile(`  since [^\n]*`)

// logOf has all that the planner and the clerk did in a task, as `skep replay` prints it, but
// for what they read, and for the planner's answer.
func logOf(t *testing.T, p *hosttest.Process, task string) (log []string) {
	t.Helper()
	out, err := exec.Command(hosttest.Program(t), "replay", "-c", filepath.Join(p.Dir, "swarm.toml"), task, "--calls", "-o", "json").Output()
	if err != nil {
		t.Fatalf("replay of %s: %v", task, err)
	}
	for line := range strings.Lines(string(out)) {
		var call struct {
			Agent, Op string
			Request   struct {
				Tool     string
				Args     struct{ Target, Subject, Body string }
				Key      string
				Value    string
				Progress struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		shown := &call.Request.Progress
		shown.Text = stepTimes.ReplaceAllString(shown.Text, "")
		ends := call.Agent == "planner" && call.Op == "mail" && call.Request.Args.Target != "clerk"
		if call.Agent != "boss" && call.Op != "kv.get" && !ends {
			log = append(log, fmt.Sprintf("%+v", call))
		}
	}
	return log
}

// pictureOf is the end of what `skep task show` prints: what the planner showed last.
func pictureOf(t *testing.T, p *hosttest.Process, task string) string {
	t.Helper()
	shown := taskShown(t, p, task)
	_, picture, found := strings.Cut(shown, "planner: workflow errands: ")
	if !found {
		t.Errorf("%s has no picture:\n%s", task, shown)
	}
	picture, _, _ = strings.Cut(picture, "\nend ")
	return picture
}

// TestStartWorkflow (I-039, I-090, I-095): a plan that a user sends over REST or IaCP, or another
// agent gives to the planner, is the same workflow: its steps, what is shown, its end and its
// picture do not differ.
func TestStartWorkflow(t *testing.T) {
	t.Parallel()
	p, addr := newPlanProcess(t)
	c := p.ClientAs(hosttest.AliceKey)
	start := workflowMessage(t, "workflow_start", startedPlan())
	ends := map[string]string{}

	a, err := c.PostMessage(t.Context(), client.Post{Task: "REST", Body: start})
	if err != nil {
		t.Fatal(err)
	}
	ends["REST"] = a.Body
	body := hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "planner", "subject": "s", "body": start}})
	if a, err = c.PostMessage(t.Context(), client.Post{Task: "agent", Entrypoint: "boss", Body: body}); err != nil {
		t.Fatal(err)
	}
	ends["agent"] = strings.TrimPrefix(a.Body, "boss got [Re: s] ")
	conn, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m := iacptest.New("workflow_start", "depot-1", "planner", startedPlan())
	m.Conversation = "IaCP"
	if err := conn.Send(m.Text()); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(readKind(t, conn, "task_response").Payload)
	if err != nil {
		t.Fatal(err)
	}
	ends["IaCP"] = string(raw)

	const drawn = "failed, 4 of 4 steps, 1 undone\n"
	wantLog, wantPicture := logOf(t, p, "REST"), pictureOf(t, p, "REST")
	if len(wantLog) < 15 || !strings.HasPrefix(wantPicture, drawn) {
		t.Errorf("over REST the log is %q, the picture %s", wantLog, wantPicture)
	}
	for way, end := range ends {
		var got, want any
		if err := json.Unmarshal([]byte(end), &got); err != nil {
			t.Fatalf("%s: %s: %v", way, end, err)
		}
		if err := json.Unmarshal([]byte(ends["REST"]), &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || !strings.Contains(end, `"E7"`) {
			t.Errorf("%s ends with %s, REST with %s", way, end, ends["REST"])
		}
		log := logOf(t, p, way)
		if !slices.Equal(log, wantLog) || !strings.Contains(strings.Join(log, "\n"), drawn) {
			t.Errorf("the log of %s is\n%s\nthat of REST\n%s", way, strings.Join(log, "\n"), strings.Join(wantLog, "\n"))
		}
		if way == "IaCP" { // the task is the partner's, and no user's
			continue
		}
		if picture := pictureOf(t, p, way); picture != wantPicture {
			t.Errorf("%s is drawn as\n%s\nREST as\n%s", way, picture, wantPicture)
		}
	}
}
