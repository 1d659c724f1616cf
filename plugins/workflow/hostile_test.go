package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	skep "skep/sdk/go"
)

// planOf is a plan of one step of agent a, with more members of the step and of the plan.
func planOf(step, more string) string {
	return `{"workflow_id":"w","execution_plan":{"steps":[{"id":"s","agent_id":"a","task_type":"x"` + step + `}]}` + more + `}`
}

// I-090, I-093: what a stranger sends that is too long, too deep, too many or no number is rejected
// with a reason that has a bounded length, and fails no turn.
func TestHostilePlans(t *testing.T) {
	t.Parallel()
	long, control := strings.Repeat("x", 200<<10), strings.Repeat(`\u0001`, 30<<10)
	steps := func(n int, one func(i int) string) string {
		var list []string
		for i := range n {
			list = append(list, one(i))
		}
		return `{"workflow_id":"w","execution_plan":{"steps":[` + strings.Join(list, ",") + `]}}`
	}
	tests := map[string]string{
		`{"workflow_id":"` + long[:90_000] + `","execution_plan":{"steps":[{"id":"s","agent_id":"a","task_type":"x"}]}}`: `workflow_id has 90000 bytes, at most 128`,
		planOf("", `,"workflow_name":"`+long+`"`):                                                       `workflow_name has`,
		planOf(`,"`+long+`":1`, ""):                                                                     `unknown field`,
		planOf(`,"`+control+`":1`, ""):                                                                  `unknown field`,
		planOf(`,"inputs":{"`+long+`":"${x}"}`, ""):                                                     `inputs.x`,
		planOf(`,"timeout":1e400`, ""):                                                                  `timeout must not be a JSON number 1e400`,
		planOf(`,"timeout":`+strings.Repeat("9", 200<<10), ""):                                          `timeout must not be a JSON number 999`,
		planOf(`,"timeout":-1`, ""):                                                                     `timeout must be seconds`,
		planOf(`,"parameters":{"n":1e400}`, ""):                                                         `cannot unmarshal number 1e400`,
		planOf(`,"retry":{"times":2000000000,"delay":1e300}`, ""):                                       `retry.delay must be`,
		planOf(`,"retries":1e3`, ""):                                                                    `retries must not be a JSON number`,
		planOf(`,"when":"`+long+`"`, ""):                                                                `when has`,
		planOf(`,"when":"`+strings.Repeat("(", 1000)+`"`, ""):                                           `at most 32 levels`,
		planOf(`,"role":"`+long+`","agent_id":"x@`+long[:40_000]+`"`, ""):                               `agent_id has`,
		planOf(`,"on_failure":"`+control+`"`, ""):                                                       `on_failure is`,
		planOf(`,"depends_on":["`+long+`"]`, ""):                                                        `depends_on names`,
		planOf(`,"description":"${steps.`+long+`.result}"`, ""):                                         `is none of`,
		`{"workflow_id":"w","execution_plan":{"timeouts":{"` + long + `":1},"steps":["` + long + `"]}}`: `timeouts.x`,
		`{"workflow_id":` + strings.Repeat("9", 200<<10) + `}`:                                          `workflow_id must not be`,
		strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000):                                           `nests more than 32 levels`,
		steps(10_000, func(int) string { return `"x"` }):                                                `has 10000 steps`,
		steps(60_000, func(int) string { return `{}` }):                                                 `has 60000 steps`,
		steps(700, func(i int) string {
			return fmt.Sprintf(`{"id":"%03d%s","agent_id":"a","task_type":"x","compensate":{"agent_id":"a","task_type":"y"}}`, i, strings.Repeat("i", 61))
		}): `the ids of the steps with compensate have 44800 bytes, at most 24576`,
	}
	for plan, want := range tests {
		h := newHive(t)
		h.turn(skep.Message{Sender: boss, Subject: strings.Repeat("s", 4<<10), Body: `{"message_type":"workflow_start","payload":` + plan + `}`})
		r, _ := h.last()
		if raw, err := json.Marshal(r); r.Status != "rejected" || r.Error == nil || !strings.Contains(r.Error.Message, want) || err != nil || len(raw) > 64<<10 {
			t.Errorf("%.100s: %.300s, want %s, %v", plan, raw, want, err)
		}
	}
}

// I-095: names and errors that strangers choose make no lines of a picture, and control no terminal.
func TestHostilePictures(t *testing.T) {
	t.Parallel()
	const hostile = `x\n\u001b[2J\u009b\u202e\u2028y`
	for _, name := range []string{`"workflow_id":"` + hostile + `"`, `"workflow_id":"w","workflow_name":"` + hostile + `"`} {
		h := newHive(t)
		h.start(`{` + name + `,"execution_plan":{"steps":[{"id":"s","agent_id":"a","task_type":"x"}]}}`)
		h.reply("a", `{"status":"failed","error":{"code":"`+hostile+`","message":"`+hostile+`"}}`)
		if r, _ := h.last(); r.Status != "failed" {
			t.Fatalf("%s: %+v", name, r)
		}
		for _, e := range h.shown {
			lines := strings.Split(e.Text, "\n")
			if strings.ContainsAny(e.Text, "\x1b\u009b\u202e\u2028") || !strings.HasPrefix(lines[0], "workflow x\ufffd\ufffd[2J\ufffd\ufffd\ufffdy: ") || len(lines) > 3 {
				t.Errorf("%s: %q", name, e.Text)
			}
		}
	}
	w := &work{flow: &flow{Labels: []label{{ID: "s", Who: "a\n\x1b[2J"}}, Steps: string(rune(waiting))}}
	if got := w.picture(); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") {
		t.Errorf("the name of an agent: %q", got)
	}
}

// I-094: results that a step refers to so often that its request would be too long fail the step,
// and no turn; a plan of many steps with long ids and results has an answer that fits a message.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents["a"] = func(asked) string { return `{"n":"` + strings.Repeat("y", 100<<10) + `","small":1}` }
	h.start(`{"workflow_id":"w","execution_plan":{"mode":"sequential","steps":[{"id":"s","agent_id":"a","task_type":"x"},
		{"id":"often","agent_id":"a","task_type":"x","on_failure":"continue","parameters":{"all":[` + strings.Repeat(`"${steps.s.result}",`, 5000) + `1]}},
		{"id":"members","agent_id":"a","task_type":"x","inputs":{},"parameters":{"all":[` + strings.Repeat(`"${steps.s.result.small}",`, 5000) + `1]}}]}}`)
	h.run()
	r, o := h.last()
	if f := o.Steps["often"].Error; r.Status != "completed" || f == nil || f.Code != "LIMIT" || !strings.Contains(f.Message, "256 KiB") || len(h.log) != 2 {
		t.Errorf("%s: %+v", r.Status, o.Steps["often"])
	}
}

// I-095: a plan with as many steps, ids and results as there may be ends with an answer that a
// message has place for, also where all of it is undone.
func TestLargestAnswer(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.world.Actions["say"] = func(json.RawMessage) (any, error) { return strings.Repeat("y", 2900), nil }
	h.world.Actions["fail"] = func(json.RawMessage) (any, error) {
		return nil, skep.Errorf(skep.Unavailable, "%s", strings.Repeat("\x01", 2000))
	}
	var steps []string
	for i := range 999 {
		undo, id := "", fmt.Sprintf("%03d%s", i, strings.Repeat("i", 61))
		if i < maxUndo/len(id) {
			undo = `,"compensate":{"tool_name":"say"}`
		}
		steps = append(steps, `{"id":"`+id+`","tool_name":"say"`+undo+`}`)
	}
	steps = append(steps, `{"id":"last","tool_name":"fail"}`)
	h.start(`{"workflow_id":"` + strings.Repeat("<", maxID) + `","workflow_name":"` + strings.Repeat("<", maxName) + `","execution_plan":{"steps":[` + strings.Join(steps, ",") + `]}}`)
	h.run()
	if r, o := h.last(); r.Status != "failed" || !o.Omitted || len(o.Summary.Undone) != maxUndo/64 || len(o.Steps) != 1000 {
		t.Errorf("%s, omitted %v, %d undone of %d", r.Status, o.Omitted, len(o.Summary.Undone), maxUndo/64)
	}
}
