package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	skep "skep/sdk/go"
)

// readAnswer reads how a step ended from the answer to its request. over is false for
// one that says that the work goes on.
func readAnswer(m *skep.Message) (result any, f *fault, over bool) {
	if m.FromSystem() {
		line, _, _ := strings.Cut(strings.TrimSpace(m.Body), "\n")
		return nil, &fault{strings.ToUpper(strings.Trim(m.Subject, ":")), line}, true
	}
	var routing struct {
		Gateway struct {
			Error any `json:"error"`
		} `json:"gateway"`
	}
	if len(m.Routing) > 0 && json.Unmarshal(m.Routing, &routing) == nil && routing.Gateway.Error != nil {
		return nil, &fault{fmt.Sprint(routing.Gateway.Error), m.Body}, true
	}
	value, err := decodeJSON([]byte(m.Body))
	if err != nil {
		return m.Body, nil, true
	}
	object, _ := value.(map[string]any)
	switch object["status"] {
	case "accepted", "in_progress":
		return nil, nil, false
	case "failed", "rejected", "error", "permission_denied":
		return nil, errorIn(object), true
	case "completed", "success":
		for _, name := range []string{"result", "output"} {
			if inner, ok := object[name]; ok {
				return inner, nil, true
			}
		}
	}
	return value, nil, true
}

// errorIn reads the error of an answer, a text or an object.
func errorIn(object map[string]any) *fault {
	f := &fault{codeFailed, fmt.Sprint("the agent answered ", object["status"])}
	switch e := object["error"].(type) {
	case string:
		f.Message = e
	case map[string]any:
		if code, ok := e["code"].(string); ok {
			f.Code = code
		}
		if text, ok := e["message"].(string); ok {
			f.Message = text
		}
	}
	return f
}

// report is the payload of a task_response.
type report struct {
	Status string  `json:"status"` // rejected, completed or failed
	Result any     `json:"result,omitempty"`
	Done   float64 `json:"progress,omitempty"`
	Error  *fault  `json:"error,omitempty"`
}

// outcome is the result of a workflow.
type outcome struct {
	ID      string         `json:"workflow_id"`
	State   string         `json:"state"` // completed, failed, cancelled, or its phase
	Steps   map[string]end `json:"steps,omitempty"`
	Summary summary        `json:"summary"`
	// UnderWay are the steps that a workflow that has not ended waits for.
	UnderWay []underWay `json:"under_way,omitempty"`
	// Omitted: the results were too long for one answer.
	Omitted bool `json:"results_omitted,omitempty"`
}

// underWay is a step that has begun, as an answer to workflow_status has it.
type underWay struct {
	Step  string `json:"step"`
	State string `json:"state"`
	Agent string `json:"agent_id,omitempty"`
	Tool  string `json:"tool_name,omitempty"`
	Since string `json:"since"`
	Until string `json:"until,omitempty"` // absent without a timeout
}

// underWay describes what the workflow waits for.
func (w *work) underWay() (list []underWay, err error) {
	for _, n := range w.Runs {
		r, err := w.record(n.Step)
		if err != nil {
			return nil, err
		}
		s := r.stepOf(n.Undo)
		list = append(list, underWay{Step: n.ID, State: n.state(), Agent: s.Agent, Tool: s.Tool, Since: timeText(n.Since), Until: timeText(n.Due)})
	}
	return list, nil
}

// timeText writes a time in ms, empty for none.
func timeText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

type summary struct {
	Total   int      `json:"total"`
	Done    int      `json:"done"`
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	NotRun  int      `json:"not_run"`
	Undone  []string `json:"compensated,omitempty"`
	Stuck   []string `json:"compensation_failed,omitempty"`
}

func (w *work) summary() summary {
	count := func(state string) int { return strings.Count(w.Steps, state) }
	return summary{
		Total: len(w.Steps), Done: count(string(rune(done))), Failed: count(string(rune(failed))), Skipped: count(string(rune(skipped))),
		NotRun: count(string(rune(cut))), Undone: w.Undone, Stuck: w.Stuck,
	}
}

// Bounds of an answer, in bytes: a message has 256 KiB, of which 8 are for the error and the name.
const (
	maxAnswer  = 248 << 10
	maxResults = 160 << 10
)

// outcome describes the workflow with the ends of its steps. Results that the answer has no place
// for are not read.
func (w *work) outcome(state string) (o outcome, err error) {
	o = outcome{ID: w.ID, State: state, Steps: map[string]end{}, Summary: w.summary()}
	ids := make([]string, len(w.Steps))
	for i := range w.Steps {
		r, err := w.record(i)
		if err != nil {
			return o, err
		}
		ids[i] = r.Step.ID
		o.Steps[ids[i]] = end{Status: stateNames[w.Steps[i]]}
	}
	bare, err := encodeJSON(o)
	if err != nil {
		return o, err
	}
	left := min(maxResults, maxAnswer-len(bare))
	for i, id := range ids {
		e := o.Steps[id]
		if err := w.ends.get(i, &e); err != nil {
			return o, err
		}
		raw, err := encodeJSON(e)
		if err != nil {
			return o, err
		}
		if left -= len(raw); left < 0 {
			o.Omitted = true
			break
		}
		o.Steps[id] = e
	}
	return o, nil
}

// finish answers the asker and deletes the plan and the results.
func (w *work) finish() error {
	w.cutUnbegun()
	answer, state := report{Status: "completed"}, "completed"
	if w.Code != "" {
		answer = report{Status: "failed", Error: &fault{w.Code, w.Why}}
		if state = "failed"; w.Code == codeCancelled {
			state = "cancelled"
		}
	}
	o, err := w.outcome(state)
	if err != nil {
		return err
	}
	answer.Result = o
	w.Phase, w.Runs, w.Due, w.Last, w.soon = phaseEnd, nil, 0, state, false
	w.show()
	n := len(w.Steps)
	for _, p := range []*pages{w.plan, w.ends} {
		if err := p.clear(n); err != nil {
			return err
		}
	}
	return w.answer(w.Asker, w.Subject, answer)
}

// maxSubject is how much of a subject its answer repeats, in bytes.
const maxSubject = 200

// answer sends a report to an agent, or completes a user's task with it.
func (w *work) answer(to, subject string, r report) error {
	raw, err := encodeJSON(r)
	if err != nil {
		return err
	}
	if to == "" {
		if err := w.setAlarm(); err != nil { // the timer would outlive the task
			return err
		}
		return w.t.TaskComplete(string(raw))
	}
	return w.t.SendResponse(to, "Re: "+subject, string(raw))
}
