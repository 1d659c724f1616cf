package iacp

import (
	"encoding/json"
	"errors"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// withdraw calls off the message that a workflow_cancel names, for its sender (I-096). It returns
// false for a workflow_cancel that its agent must have: one of a workflow, which undoes its steps,
// or of a message that the sender has not sent.
func (c *conn) withdraw(caller gateway.Caller, m message.Message, text []byte) (handled bool) {
	var named struct {
		ID string `json:"message_id"`
	}
	if m.Type != message.WorkflowCancel || json.Unmarshal(m.Payload, &named) != nil || named.ID == "" {
		return false
	}
	x, err := c.g.Runtime.Find(c.ctx, caller, named.ID)
	if errors.Is(err, gateway.ErrUnknown) {
		return false
	}
	var n note
	if err == nil {
		n, err = noteOf(x)
	}
	if err == nil && (n.Type == message.WorkflowStart || n.Sender != m.Sender.ID) {
		return false
	}
	state := "cancelled"
	if err == nil {
		err = c.callOff(caller, m, text, x)
	}
	if errors.Is(err, gateway.ErrConflict) { // it has its answer
		var a gateway.Answer
		if a, _, err = c.g.Runtime.Look(c.ctx, x); a.Outcome != gateway.Cancelled {
			state = "ended"
		}
	}
	c.g.record(caller, m, text, x, err)
	if err != nil {
		c.refuse(m, err)
		return true
	}
	c.acknowledge(m)
	if m.Owed() {
		_ = c.tell(message.TaskResponse, m, map[string]any{"status": "completed", "result": map[string]string{"message_id": named.ID, "state": state}})
	}
	return true
}

// callOff cancels an exchange for a message of its sender, who may sign it.
func (c *conn) callOff(caller gateway.Caller, m message.Message, text []byte, x gateway.Exchange) error {
	if err := c.g.checkSender(caller, m.Sender.ID); err != nil {
		return err
	}
	if err := c.g.checkSignature(caller, m, text); err != nil {
		return err
	}
	return c.g.Runtime.Cancel(c.ctx, caller, x.ID, "its sender has withdrawn it")
}
