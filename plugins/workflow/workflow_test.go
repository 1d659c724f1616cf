package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// diamond is a plan of four steps, the two in the middle side by side.
const diamond = `{"workflow_id":"w","workflow_name":"diamond","execution_plan":{"steps":[
	{"id":"first","agent_id":"a","task_type":"first"},
	{"id":"left","agent_id":"b","task_type":"left"},
	{"id":"right","agent_id":"c","task_type":"right","parameters":{"n":"${steps.first.result.n}","text":"n is ${steps.first.result.n}!"}},
	{"id":"last","agent_id":"d","task_type":"last"}],
	"dependencies":[{"step":"left","depends_on":["first"]},{"step":"right","depends_on":["first"]},{"step":"last","depends_on":["left","right"]}]}}`

// V-I33, I-090, I-091, I-094, I-095: branches run side by side, each step once and after
// those it waits for, whose results it gets.
func TestDiamond(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(diamond)
	if h.subjects() != "first" {
		t.Fatalf("asked %s", h.subjects())
	}
	h.reply("a", `{"status":"completed","result":{"n":3}}`)
	if h.subjects() != "first left right" {
		t.Fatalf("asked %s", h.subjects())
	}
	if want := `{"parameters":{"inputs":{"first":{"n":3}},"n":3,"text":"n is 3!"},"task_type":"right"}`; h.log[2].body != want {
		t.Errorf("right got %s, want %s", h.log[2].body, want)
	}
	h.reply("c", "text")
	h.control("workflow_status", `{"workflow_id":"w"}`)
	if r, o := h.last(); r.Status != "completed" || r.Done != 0.5 || o.State != "running" || !slices.Equal(o.UnderWay, []underWay{{Step: "left", State: "running", Agent: "b", Since: "2026-01-01T12:00:00Z"}}) {
		t.Errorf("status %+v", r)
	}
	if got := h.shown[len(h.shown)-1].Text; !strings.Contains(got, "\nleft   running   b  after first  since 2026-01-01T12:00:00Z\n") {
		t.Errorf("picture\n%s", got)
	}
	h.reply("b", `7`)
	if want := `{"parameters":{"inputs":{"left":7,"right":"text"}},"task_type":"last"}`; h.log[3].body != want {
		t.Errorf("last got %s, want %s", h.log[3].body, want)
	}
	h.reply("d", `{"ok":true}`)
	r, o := h.last()
	if r.Status != "completed" || o.Summary.Done != 4 || o.Steps["right"].Result != "text" || len(h.log) != 4 {
		t.Errorf("ended with %+v", r)
	}
	if got := h.shown[len(h.shown)-1].Text; !strings.HasPrefix(got, "workflow diamond: completed, 4 of 4 steps\n") || !strings.Contains(got, "last   done      d  after left, right") {
		t.Errorf("picture\n%s", got)
	}
	if values := h.world.Values(skep.ScopeTask, skeptest.Input{Agent: "flow"}); len(values) != 0 || len(h.world.Timers()) != 0 {
		t.Errorf("left behind %v, %v", values, h.world.Timers())
	}
	h.start(diamond)
	if len(h.log) != 5 {
		t.Error("the task takes no second workflow")
	}
}

// V-I34, I-093: all that is wrong with a plan is told at once, by step and member.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		`{"workflow_id":"w","execution_plan":{"steps":[{"id":"a b","agent_id":"a","task_type":"x"},
			{"id":"b","agent_id":"nobody","task_type":"x","timeout":"soon"},{"id":"c","task_type":"x","dependson":["b"]},
			{"id":"d","agent_id":"d","when":"${steps.zz.result} =","task_type":"x","on_failure":"cry"},
			{"id":"d","agent_id":"flow","task_type":"x","parameters":[1],"depends_on":["q"],"retries":1000}],
			"dependencies":["b -> z","b"],"timeouts":{"default":"x","q":1}}}`: {
			`steps[0].id must have`, `steps[1] "b": timeout must not be a JSON string`, `steps[1] "b": agent_id "nobody" is not in the comm_targets`,
			`steps[2] "c": unknown field "dependson"`, `steps[2] "c": agent_id is missing`,
			`steps[3] "d": on_failure is "cry"`, `steps[3] "d": when at character`, `steps[4] "d": id is that of steps[3]`, `steps[4] "d": agent_id is this agent`,
			`steps[4] "d": parameters must be an object`, `steps[4] "d": depends_on names "q"`, `steps[4] "d": retries must be`,
			`dependencies names "z"`, `dependencies[1] must be`, `timeouts.default must be`, `timeouts.q names no step`,
		},
		`{"workflow_id":"w","execution_plan":{"steps":[{"id":"a","agent_id":"a","task_type":"x","depends_on":["c"]},{"id":"b","agent_id":"b","task_type":"x"},
			{"id":"c","agent_id":"c","task_type":"x","parameters":{"y":"${steps.a.result}"}}]}}`: {`in a circle: depends_on of a, c`},
		`{"execution_plan":{"steps":[{"id":"a","agent_id":"a","task_type":"x"}]}}`:                                                   {`workflow_id is missing`},
		`{"workflow_id":"w","execution_plan":{"steps":[]}}`:                                                                          {`0 steps`},
		`{"workflow_id":"w","execution_plan":{"steps":[{"id":"a","agent_id":"a","task_type":"x","compensate":{"task_type":"y"}}]}}`:  {`steps[0] "a": compensate.agent_id is missing`},
		`{"workflow_id":"w","execution_plan":{"steps":[{"id":"a","agent_id":"a","task_type":"x","parameters":{"y":"${steps.a}"}}]}}`: {`steps[0] "a": parameters y: ${steps.a} is none of`},
		`{"workflow_id":7}`: {`payload: workflow_id must not be a JSON number`},
		`{"workflow_id":"w","execution_plan":{"steps":[` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `]}}`: {`nests more than 32 levels`},
		`{"workflow_id":"w","execution_plan":{"steps":[` + strings.Repeat(`"x",`, 1000) + `"x"]}}`:                     {`has 1001 steps`},
		`{"workflow_id":"w","participants":[{"agent_id":"a"}],"execution_plan":{"steps":[{"id":"b","agent_id":"b","task_type":"x"}]}}`: {
			`steps[0] "b": agent_id "b" is none of the participants`},
	}
	for plan, wants := range tests {
		h := newHive(t)
		h.start(plan)
		r, _ := h.last()
		if r.Status != "rejected" || r.Error == nil || r.Error.Code != codeFormat || len(h.log) > 0 {
			t.Errorf("%s: %+v", plan, r)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(r.Error.Message, want) {
				t.Errorf("%s\nlacks %q:\n%s", plan, want, r.Error.Message)
			}
		}
	}
}

// What is no control message is answered, and starts nothing.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	for _, body := range []string{``, `hello`, `[]`, `{}`, `{"message_type":"task_request"}`, `{"message_type":"workflow_start"}`, `{"message_type":"workflow_status","payload":{"workflow_id":"x"}}`, `{"message_type":"workflow_cancel","payload":7}`} {
		n := len(h.replies)
		h.turn(skep.Message{Sender: boss, Body: body})
		if len(h.replies) != n+1 || h.replies[n].Status != "rejected" {
			t.Errorf("%q: %+v", body, h.replies[n:])
		}
	}
	h.turn(skep.Message{Sender: boss, Routing: json.RawMessage(`{"gateway":{"parts":[{"sha256":"a"}]}}`)})
	if r, _ := h.last(); r.Error == nil || r.Error.Code != "LIMIT" || !strings.Contains(r.Error.Message, "256 KiB") {
		t.Errorf("a plan that is too long: %+v", r)
	}
	if len(h.log) > 0 {
		t.Errorf("asked %v", h.log)
	}
}

// chainPlan has n steps in a row, each undone by undo-ID; extra is more of each.
func chainPlan(n int, extra string) string {
	var steps []string
	for i := range n {
		after := ""
		if i > 0 {
			after = fmt.Sprintf(`,"depends_on":["s%d"]`, i-1)
		}
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","agent_id":"a","task_type":"s%d"%s%s,"compensate":{"agent_id":"b","task_type":"undo-s%d","parameters":{"of":"${steps.s%d.result}"}}}`, i, i, after, extra, i, i))
	}
	return `{"workflow_id":"w","execution_plan":{"steps":[` + strings.Join(steps, ",") + `]}}`
}

// I-096: a cancellation lets the step under way end, and then undoes what was done, the
// last first, each once.
func TestCancelCompensates(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents["b"] = echo
	h.start(chainPlan(5, ""))
	h.reply("a", `0`)
	h.reply("a", `1`)
	h.control("workflow_cancel", `{"workflow_id":"w","reason":"enough"}`)
	if r, o := h.last(); r.Status != "completed" || o.State != phaseDrain {
		t.Fatalf("cancelled: %+v", r)
	}
	h.control("workflow_cancel", `{"workflow_id":"w"}`)
	h.reply("a", `2`)
	h.run()
	if want := "s0 s1 s2 undo-s2 undo-s1 undo-s0"; h.subjects() != want {
		t.Errorf("asked %s, want %s", h.subjects(), want)
	}
	if want := `{"parameters":{"of":1},"task_type":"undo-s1"}`; h.log[4].body != want {
		t.Errorf("undo-s1 got %s", h.log[4].body)
	}
	r, o := h.last()
	if r.Status != "failed" || r.Error.Code != codeCancelled || !strings.Contains(r.Error.Message, "boss: enough") || o.State != "cancelled" ||
		o.Summary.NotRun != 2 || !slices.Equal(o.Summary.Undone, []string{"s2", "s1", "s0"}) {
		t.Errorf("ended with %+v, %+v", r.Error, o)
	}
}

// A failure compensates likewise; a compensation that fails is told and stops none of the
// others; a step whose answer did not come may have been done, and is compensated.
func TestFailureCompensates(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents["a"] = func(a asked) string {
		if a.subject == "s3" {
			return `{"status":"failed","error":{"code":"E7","message":"no"}}`
		}
		return `1`
	}
	h.agents["b"] = func(a asked) string {
		if a.subject == "undo-s1" {
			return `{"status":"error","error":"stuck"}`
		}
		return `"ok"`
	}
	h.start(chainPlan(5, ""))
	h.run()
	r, o := h.last()
	if h.subjects() != "s0 s1 s2 s3 undo-s2 undo-s1 undo-s0" || r.Error.Code != "E7" || !slices.Equal(o.Summary.Undone, []string{"s2", "s0"}) ||
		!slices.Equal(o.Summary.Stuck, []string{"s1"}) || o.Steps["s1"].Undo != "failed: stuck" || o.Steps["s3"].Error.Message != "no" {
		t.Errorf("asked %s, ended with %+v, %+v", h.subjects(), r.Error, o)
	}
	for n, want := range []string{
		"failed, 5 of 5 steps, 2 undone, 1 not undone\nE7: step \"s3\": no\ns0  undone    a\ns1  stuck     a  after s0\ns2  undone    a  after s1\ns3  failed    a  after s2\ns4  not run   a  after s3",
		"compensating, 5 of 5 steps, 1 undone, 1 not undone\nE7: step \"s3\": no\ns0  undoing   a  since 2026-01-01T12:00:00Z until 2026-01-01T12:10:00Z\ns1  stuck     a  after s0\ns2  undone    a  after s1\ns3  failed    a  after s2\ns4  not run   a  after s3",
	} {
		if got := h.shown[len(h.shown)-1-n].Text; got != "workflow w: "+want {
			t.Errorf("the picture is\n%s\nwant\n%s", got, want)
		}
	}
	h = newHive(t)
	h.agents["b"] = echo
	h.start(chainPlan(2, `,"timeout":5`))
	h.run()
	if h.subjects() != "s0 undo-s0" {
		t.Errorf("a step in doubt: asked %s", h.subjects())
	}
}

// A compensation that is not answered has ten minutes, and withdraws its request; the others
// follow, and the end has it.
func TestCompensationTimeout(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	begun := h.world.Now
	h.agents["a"] = func(a asked) string {
		if a.subject == "s2" {
			return `{"status":"failed","error":"no"}`
		}
		return `1`
	}
	h.agents["b"] = echo
	h.start(strings.Replace(chainPlan(3, ""), `{"agent_id":"b","task_type":"undo-s1"`, `{"agent_id":"mute","task_type":"undo-s1"`, 1))
	h.run()
	r, o := h.last()
	if r.Status != "failed" || !slices.Equal(o.Summary.Undone, []string{"s0"}) || !slices.Equal(o.Summary.Stuck, []string{"s1"}) || o.Steps["s1"].Undo != "failed: no answer in time" {
		t.Errorf("ended with %+v, %+v", r.Error, o)
	}
	if d := h.world.Now.Sub(begun); d != undoTimeout || len(h.withdrawn) != 1 {
		t.Errorf("ended after %v, withdrawn %q", d, h.withdrawn)
	}
}

// V-I35, I-092: a timeout is a timer, of a day as of a second; a late answer changes
// nothing.
func TestTimeoutOfADay(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	begun := h.world.Now
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"slow","agent_id":"mute","task_type":"slow"},{"id":"quick","agent_id":"a","task_type":"quick"}],
		"timeouts":{"slow":86400,"default":1}}}`)
	h.reply("a", `1`)
	if n := len(h.world.Timers()); n != 1 {
		t.Fatalf("%d timers, want one", n)
	}
	m, _ := h.world.Fire()
	h.turn(m)
	if len(h.replies) == 0 {
		m, ok := h.world.Fire() // the first was the quick step's
		if !ok {
			t.Fatal("no timer is left")
		}
		h.turn(m)
	}
	if d := h.world.Now.Sub(begun); d < 24*time.Hour || d > 25*time.Hour {
		t.Errorf("ended after %v", d)
	}
	r, o := h.last()
	if r.Status != "failed" || r.Error.Code != codeTimeout || o.Steps["slow"].Status != "failed" || o.Steps["quick"].Status != "done" {
		t.Errorf("ended with %+v %+v", r.Error, o)
	}
	n := len(h.replies)
	h.reply("mute", `late`)
	if len(h.replies) != n {
		t.Error("a late answer was taken")
	}
}

// A step that waits to be tried again is not asked when another fails in the same turn and
// ends the workflow. What an agent tells as its error is cut.
func TestStopBeforeATry(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(`{"workflow_id":"w","execution_plan":{"mode":"parallel","steps":[{"id":"slow","agent_id":"mute","task_type":"slow","timeout":5},
		{"id":"again","agent_id":"a","task_type":"again","retry":{"times":1,"delay":5}}]}}`)
	h.reply("a", `{"status":"failed","error":"`+strings.Repeat("x", 200<<10)+`"}`)
	h.run()
	r, o := h.last()
	if h.subjects() != "slow again" || r.Error == nil || r.Error.Code != codeTimeout || o.Steps["again"].Status != "not run" {
		t.Errorf("asked %s, ended with %+v, %+v", h.subjects(), r.Error, o)
	}
	h = newHive(t)
	h.agents["a"] = func(asked) string {
		return `{"status":"failed","error":"` + strings.Repeat("x", 200<<10) + `"}`
	}
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"one","agent_id":"a","task_type":"one"}]}}`)
	h.run()
	if r, o := h.last(); r.Error == nil || len(r.Error.Message) > 2*maxWhy || len(o.Steps["one"].Error.Message) > 2*maxWhy {
		t.Errorf("ended with %.100s", r.Error)
	}
}

// V-I36: the timeout of the whole ends what is under way.
func TestTimeoutOfTheWorkflow(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"one","agent_id":"mute","task_type":"one"},{"id":"two","agent_id":"a","task_type":"two","depends_on":["one"]}],"timeouts":{"workflow":60}}}`)
	h.run()
	if r, o := h.last(); r.Error == nil || r.Error.Code != codeTimeout || o.Summary.Failed != 1 || o.Summary.NotRun != 1 || len(h.log) != 1 {
		t.Errorf("ended with %+v %+v", r, o)
	}
}

// V-I35: a failed step is tried again after a pause that doubles, and what follows it goes
// by on_failure.
func TestRetriesAndFailures(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"abort":           "x x x / failed done=0 failed=1 skipped=0 not_run=2",
		"continue":        "x x x y z / completed done=2 failed=1 skipped=0 not_run=0",
		"skip_dependents": "x x x z / completed done=1 failed=1 skipped=0 not_run=1",
	} {
		h := newHive(t)
		begun := h.world.Now
		h.agents["a"] = func(asked) string { return `{"status":"rejected","error":"busy"}` }
		h.agents["b"] = echo
		last := `,"depends_on":["x"]`
		if mode == "skip_dependents" {
			last = `,"agent_id":"c"`
			h.agents["c"] = echo
		}
		h.start(`{"workflow_id":"w","execution_plan":{"mode":"parallel","steps":[{"id":"x","agent_id":"a","task_type":"x","retry":{"times":2,"delay":10},"on_failure":"` + mode + `"},
			{"id":"y","agent_id":"b","task_type":"y","depends_on":["x"]},{"id":"z","task_type":"z"` + strings.Replace(last, `,"depends_on"`, `,"agent_id":"b","depends_on"`, 1) + `}]}}`)
		h.run()
		r, o := h.last()
		got := fmt.Sprintf("%s / %s done=%d failed=%d skipped=%d not_run=%d", h.subjects(), r.Status, o.Summary.Done, o.Summary.Failed, o.Summary.Skipped, o.Summary.NotRun)
		if mode == "skip_dependents" {
			got = strings.Replace(got, "x z x x", "x x x z", 1) // z is independent
		}
		if got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
		if d := h.world.Now.Sub(begun); d < 30*time.Second || d > 31*time.Second {
			t.Errorf("%s: pauses of %v, want 10 s and 20 s", mode, d)
		}
	}
}

// A step whose condition is false is skipped, and what waits for it goes on; a condition
// that cannot be evaluated fails its step.
func TestConditions(t *testing.T) {
	t.Parallel()
	plan := `{"workflow_id":"w","execution_plan":{"steps":[{"id":"score","agent_id":"a","task_type":"score"},
		{"id":"high","agent_id":"b","task_type":"high","when":"${steps.score.result.n} > 5 and not ${steps.score.result.blocked}"},
		{"id":"low","agent_id":"b","task_type":"low","when":"not (${steps.score.result.n} > 5)"},
		{"id":"join","agent_id":"b","task_type":"join","depends_on":["high","low"],"parameters":{"high":"${steps.high.status}","was":"${steps.high.result}"}}]}}`
	for answer, want := range map[string]string{
		`{"n":9,"blocked":false}`: "score high join",
		`{"n":3,"blocked":false}`: "score low join",
		`{"n":9,"blocked":true}`:  "score join",
		`{"n":"x"}`:               "score",
	} {
		h := newHive(t)
		h.agents["a"], h.agents["b"] = func(asked) string { return answer }, echo
		h.start(plan)
		h.run()
		if h.subjects() != want {
			t.Errorf("%s: asked %s, want %s", answer, h.subjects(), want)
		}
		if want == "score join" && !strings.Contains(h.log[1].body, `"high":"skipped"`) {
			t.Errorf("join got %s", h.log[1].body)
		}
	}
}

// V-I38: the document's form: steps are responsibilities of participants, one after the
// other, and a coordinator combines all results.
func TestResponsibilities(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	for _, name := range []string{"a", "b", "boss"} {
		h.agents[name] = echo
	}
	h.start(`{"workflow_id":"w","workflow_name":"n","description":"d","participants":[
		{"agent_id":"boss","role":"coordinator","responsibilities":[]},
		{"agent_id":"a","role":"worker","responsibilities":["parse code"]},{"agent_id":"b","role":"specialist","responsibilities":["check it"]}],
		"execution_plan":{"steps":["parse code","check it"],"dependencies":[],"timeouts":{}}}`)
	if len(h.log) != 1 {
		t.Fatalf("asked %v", h.log)
	}
	h.run()
	if h.subjects() != "parse code check it combine" || h.log[2].agent != "boss" || !strings.Contains(h.log[2].body, `"inputs":{"check_it":{"did":"check it"},"parse_code"`) {
		t.Errorf("asked %+v", h.log)
	}
	if r, o := h.last(); r.Status != "completed" || o.Summary.Done != 3 {
		t.Errorf("ended with %+v", r)
	}
}

// A step with tool_name is an action of this agent, run in its turn, or a tool request to
// an agent.
func TestTools(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.world.Actions["double"] = func(args json.RawMessage) (any, error) {
		var in struct{ N int }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		return in.N * 2, nil
	}
	h.agents["tools"] = func(asked) string { return `{"status":"success","output":5}` }
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"x","agent_id":"tools","tool_name":"count","parameters":{"of":"bees"}},
		{"id":"y","tool_name":"double","parameters":{"n":"${steps.x.result}"}},{"id":"z","tool_name":"missing","depends_on":["y"],"on_failure":"continue"}]}}`)
	h.run()
	r, o := h.last()
	if h.log[0].body != `{"parameters":{"of":"bees"},"tool_name":"count"}` || o.Steps["y"].Result != 10.0 || o.Steps["z"].Error.Code != "UNSUPPORTED" || r.Status != "completed" {
		t.Errorf("asked %+v, ended with %+v", h.log, o)
	}
}

// A text reaches its agent as it is, and a host's report fails the step.
func TestPlainMail(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"x","agent_id":"a@depot","task_type":"mail.message","parameters":{"subject":"sum","body":"(17+4)*3"}}]}}`)
	if a := h.log[0]; a.agent != "a@depot" || a.subject != "sum" || a.body != "(17+4)*3" {
		t.Errorf("asked %+v", a)
	}
	h.turn(skep.Message{Type: skep.TypeResponse, RefID: h.log[0].id, Subject: "::router_error::", Body: "depot is down\nmore", Sender: skep.Address{Type: skep.AddressSystem, Name: "hive"}})
	if r, _ := h.last(); r.Error == nil || r.Error.Code != "ROUTER_ERROR" || !strings.Contains(r.Error.Message, "depot is down") {
		t.Errorf("ended with %+v", r)
	}
}

// An error of a partner, which its gateway marks, fails the step under its code.
func TestErrorOfAPartner(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"x","agent_id":"a@depot","task_type":"weigh"}]}}`)
	h.turn(skep.Message{Type: skep.TypeResponse, RefID: h.log[0].id, Subject: "[PERMISSION_DENIED]", Body: "not you", Routing: json.RawMessage(`{"gateway":{"error":"PERMISSION_DENIED"}}`),
		Sender: skep.Address{Type: skep.AddressAgent, Name: "a@depot"}})
	if r, _ := h.last(); r.Error == nil || r.Error.Code != "PERMISSION_DENIED" || r.Error.Message != `step "x": not you` {
		t.Errorf("ended with %+v", r.Error)
	}
}

// A user's workflow ends the task; what is asked of it meanwhile is shown, and does not.
func TestUser(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	ann := skep.Address{Type: skep.AddressUser, Name: "ann"}
	h.turn(skep.Message{Sender: ann, Body: `{"message_type":"workflow_start","payload":` + diamond + `}`})
	for _, body := range []string{`{"message_type":"workflow_status","payload":{"workflow_id":"w"}}`, `{"message_type":"workflow_start","payload":` + diamond + `}`, `hm`} {
		h.turn(skep.Message{Sender: ann, Body: body})
	}
	if h.finish != "" || len(h.log) != 1 {
		t.Fatalf("finished %q, asked %v", h.finish, h.log)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		h.agents[name] = func(asked) string { return `{"n":1}` }
	}
	h.run()
	if !strings.Contains(h.finish, `"state":"completed"`) || len(h.replies) > 0 {
		t.Errorf("finished %q", h.finish)
	}
}

// 1,000 steps, in a row and side by side, stay within what a turn and the values of a
// task may have.
func TestThousandSteps(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents["a"] = func(a asked) string { return `"` + a.subject + strings.Repeat("x", 500) + `"` }
	var steps []string
	for i := range 1000 {
		after := fmt.Sprintf(`,"depends_on":["s%d"]`, min(max(i-1, 0), 500))
		if i == 0 {
			after = ""
		}
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","agent_id":"a","task_type":"s%d"%s}`, i, i, after))
	}
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[` + strings.Join(steps, ",") + `]}}`)
	most := 0
	for h.answerOne() {
		most = max(most, len(h.open))
	}
	r, o := h.last()
	if r.Status != "completed" || o.Summary.Done != 1000 || len(h.log) != 1000 || !o.Omitted || most > maxRuns {
		t.Errorf("%s, %+v, %d under way", r.Status, o.Summary, most)
	}
	if len(h.state) > 64<<10 {
		t.Errorf("the state has %d bytes", len(h.state))
	}
	for i, want := range map[int]string{0: "running   1  s0\nwaiting   999", len(h.shown) - 1: "1000 of 1000 steps\ndone      1000"} {
		if got := h.shown[i].Text; !strings.Contains(got, want) {
			t.Errorf("picture %d is %s, want %s", i, got, want)
		}
	}
}

// Results that are too long for a page are blobs, and are found again.
func TestLongResults(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	long := strings.Repeat("y", 60<<10) // right gets it three times, in a message of 256 KiB
	h.agents["a"], h.agents["b"], h.agents["c"], h.agents["d"] = func(asked) string { return `{"n":"` + long + `"}` }, echo, echo, echo
	h.start(diamond)
	h.run()
	if !strings.Contains(h.log[2].body, long) {
		t.Errorf("right got %d bytes", len(h.log[2].body))
	}
	if r, _ := h.last(); r.Status != "completed" {
		t.Errorf("ended with %s", r.Status)
	}
}

// The last turn that a task has tells why the workflow ends.
func TestOutOfMessages(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(diamond)
	h.turn(skep.Message{Type: skep.TypeResponse, Subject: "::maximum_steps_reached::", Sender: skep.Address{Type: skep.AddressSystem, Name: "hive"}})
	if r, o := h.last(); r.Error == nil || r.Error.Code != "LIMIT" || o.Summary.NotRun != 3 {
		t.Errorf("ended with %+v, %+v", r, o)
	}
}
