// Command workflow owns the bundled agent that runs a plan of steps: each is a request
// to an agent or an action, after the steps that it waits for. The plan is this agent's
// state, so a host that dies goes on where it was. It must not know what the steps do,
// nor how their mail travels.
package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/plugins/internal/question"
	skep "skep/sdk/go"
)

// Workflow is the agent.
type Workflow struct{}

var _ = skep.Run(skep.Descriptor{
	Name:        "workflow",
	Version:     "1.0.0",
	Description: "Runs a plan: steps that are requests, side by side or one after the other, with conditions, retries and compensation.",
	Agents: []skep.AgentInfo{{
		Name:        "workflow",
		Description: `Send {"message_type": "workflow_start", "payload": PLAN}; workflow_status and workflow_cancel with a workflow_id.`,
	}},
	Requests: []skep.Request{{Allow: "kv", Value: []byte(`"task"`), Reason: "to keep the plan and the results of its steps"}},
}, Workflow{})

func main() {}

// control is the body of a request.
type control struct {
	Type    string          `json:"message_type"`
	Payload json.RawMessage `json:"payload"`
}

// Turn takes the workflow of this task a step further.
func (Workflow) Turn(t *skep.Turn) error {
	w := newWork(t, &flow{})
	if err := t.State(w.flow); err != nil {
		return err
	}
	if err := w.handle(&t.Message); err != nil {
		return err
	}
	if err := w.goOnAndShow(); err != nil {
		return err
	}
	return t.SetState(w.flow)
}

// handle takes the message in hand.
func (w *work) handle(m *skep.Message) error {
	switch {
	case m.FromTimer():
		if m.ID == w.Alarm.ID {
			w.Alarm = alarm{}
		}
		return w.handleTimer()
	case m.Type == skep.TypeBroadcast:
		return w.t.IgnoreBroadcast("")
	case m.Type == skep.TypeResponse && w.Phase != phaseEnd:
		known, err := w.answered(m)
		if known || err != nil {
			return err
		}
	}
	switch {
	case m.FromSystem() && m.Subject == "::maximum_steps_reached::" && w.Phase != phaseEnd:
		w.Code, w.Why = "LIMIT", "the task ran out of messages; raise task_messages in [limits]"
		return w.finish()
	case m.FromSystem() || m.Type == skep.TypeResponse || m.Type == skep.TypeBroadcastComplete:
		w.t.Log("a message that no step waits for", "from", m.Sender.Name, "subject", m.Subject)
		return nil
	}
	return w.control(m)
}

// goOnAndShow begins what is ready, writes what has changed and sets the alarm.
func (w *work) goOnAndShow() error {
	if w.Phase == phaseEnd {
		return nil
	}
	if !w.soon {
		if err := w.beginReady(); err != nil {
			return err
		}
	}
	if w.Phase == phaseEnd {
		if w.Asker == "" {
			return nil
		}
		return w.setAlarm()
	}
	if err := w.ends.flush(); err != nil {
		return err
	}
	w.show()
	return w.setAlarm()
}

// control starts a workflow, answers its state, or cancels it.
func (w *work) control(m *skep.Message) error {
	var c control
	asker := m.Sender.Name
	if m.FromUser() {
		asker = ""
	}
	err := json.Unmarshal([]byte(m.Body), &c)
	if m.Type == skep.TypeInterrupt && asker != "" {
		return w.handleInterrupt(asker, c)
	}
	if question.IsLong(m) {
		return w.refuse(asker, m, "LIMIT", "the plan is longer than a message, which has 256 KiB")
	}
	if err != nil {
		return w.refuse(asker, m, codeFormat, `the body must be {"message_type": "workflow_start", "payload": PLAN}: `+question.Clip(typeFault(err), maxFault))
	}
	switch c.Type {
	case "workflow_start":
		return w.startPlan(asker, m, c.Payload)
	case "workflow_status", "workflow_cancel":
		return w.answerControl(asker, m, c)
	}
	return w.refuse(asker, m, codeFormat, fmt.Sprintf("message_type is %.60q; it is workflow_start, workflow_status or workflow_cancel", c.Type))
}

// handleInterrupt cancels the workflow for its asker. Nothing is answered: an answer would be one
// to the workflow_start, which has its own when the workflow has ended.
func (w *work) handleInterrupt(asker string, c control) error {
	var p withdrawal
	if c.Type != "workflow_cancel" || asker != w.Asker || json.Unmarshal(c.Payload, &p) != nil || p.ID != w.ID {
		w.t.Log("an interrupt that cancels no workflow", "from", asker)
		return nil
	}
	return w.stopWorkflow(codeCancelled, cancelText(asker, p.Reason))
}

// refuse answers what cannot be done. A user's task goes on if a workflow runs in it.
func (w *work) refuse(asker string, m *skep.Message, code, why string) error {
	if asker == "" && w.Phase != phaseEnd {
		w.t.Note("refused: " + question.Clip(why, 1000))
		_, err := w.t.EmitNote("refused: " + question.Clip(why, 1000))
		return err
	}
	return w.answer(asker, question.Clip(m.Subject, maxSubject), report{Status: "rejected", Error: &fault{code, why}})
}

func (w *work) startPlan(asker string, m *skep.Message, raw json.RawMessage) error {
	if w.Phase != phaseEnd {
		return w.refuse(asker, m, "CONFLICT", fmt.Sprintf("workflow %q runs in this task, which has one at a time: start another in a new task, or end this one by a workflow_cancel", w.ID))
	}
	agent := &w.t.Agent
	may := func(name string) bool {
		return strings.Contains(name, "@") || slices.Contains(agent.CommTargets, name)
	}
	if asker != "" && !may(asker) { // else all is done, and the answer cannot leave
		return skep.Errorf(skep.Denied, "agent %q may not write to %q, who wants a workflow carried out; add it to [agents.%s] comm_targets", agent.Name, asker, agent.Name)
	}
	p, err := readPlan(raw, agent.Name, may)
	if err != nil {
		return w.refuse(asker, m, codeFormat, err.Error())
	}
	return w.beginWorkflow(p, asker, question.Clip(m.Subject, maxSubject))
}

// answerControl answers workflow_status and workflow_cancel with the state of the workflow. The
// answer is the last to its question, so its own status is completed.
func (w *work) answerControl(asker string, m *skep.Message, c control) error {
	var p struct {
		ID     string `json:"workflow_id"`
		Reason string `json:"reason"`
	}
	if len(c.Payload) > 0 && json.Unmarshal(c.Payload, &p) != nil {
		return w.refuse(asker, m, codeFormat, "payload must be an object with workflow_id")
	}
	if p.ID != w.ID || w.ID == "" {
		return w.refuse(asker, m, "NOT_FOUND", fmt.Sprintf("this task has no workflow %.70q", p.ID))
	}
	if c.Type == "workflow_cancel" && w.Phase != phaseEnd {
		if err := w.stopWorkflow(codeCancelled, cancelText(asker, p.Reason)); err != nil {
			return err
		}
		w.soon = true // this turn's message is answered first
		if asker == "" {
			return nil
		}
	}
	if asker == "" && w.Phase != phaseEnd {
		_, err := w.t.EmitNote(w.picture())
		return err
	}
	state := w.Phase
	if state == phaseEnd {
		state = w.Last
	}
	s := w.summary()
	under, err := w.underWay()
	if err != nil {
		return err
	}
	return w.answer(asker, question.Clip(m.Subject, maxSubject), report{
		Status: "completed", Done: float64(s.Done+s.Failed+s.Skipped+s.NotRun) / float64(max(1, s.Total)),
		Result: outcome{ID: w.ID, State: state, Summary: s, UnderWay: under},
	})
}

func cancelText(asker, reason string) string {
	if asker == "" {
		asker = "a user"
	}
	text := "cancelled by " + asker
	if reason != "" {
		text += ": " + question.Clip(reason, 1000)
	}
	return text
}
