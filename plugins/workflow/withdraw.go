package main

import (
	"encoding/json"

	"skep/plugins/internal/question"
	skep "skep/sdk/go"
)

// withdrawal is the payload of the interrupt that withdraws a request.
type withdrawal struct {
	ID string `json:"workflow_id"`
	// Step and Message name what is withdrawn: the step, and the request by its message id.
	Step    string `json:"step"`
	Message string `json:"message_id"`
	Reason  string `json:"reason"`
}

// withdraw sends the agent of a request an interrupt whose subject begins with cancel, once:
// gateways withdraw the request at a partner for it, and an agent of a swarm that preempts is
// called off. A host that refuses the interrupt changes nothing: the workflow waits as for any
// step.
func (w *work) withdraw(n *run, r record, reason string) error {
	s := r.stepOf(n.Undo)
	if n.Message == "" {
		return nil
	}
	_, request, err := w.request(s, r, n.Undo)
	if err != nil {
		return err
	}
	of := withdrawal{w.ID, n.ID, n.Message, question.Clip(reason, maxWhy)}
	var inner struct {
		control
		Payload struct {
			ID string `json:"workflow_id"`
		} `json:"payload"`
	}
	if json.Unmarshal(request, &inner) == nil && inner.Type == "workflow_start" {
		of.ID = inner.Payload.ID // the step is a workflow of its agent
	}
	body, err := encodeJSON(map[string]any{"message_type": "workflow_cancel", "payload": of})
	if err != nil {
		return err
	}
	n.Message = ""
	err = w.t.SendInterrupt(s.Agent, "cancel "+n.ID, string(body))
	if isCode(err, skep.Cancelled) {
		return err
	}
	if err != nil {
		w.t.Log("a step could not be called off", "step", n.ID, "agent", s.Agent, "error", err)
	}
	return nil
}
