package gateway

import (
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// OutboxRef is what a gateway keeps of an outbox message in its records, to deliver the
// answer.
type OutboxRef struct {
	Instance     swarm.InstanceKey `json:"instance,omitzero"`
	Swarm        string            `json:"swarm"`
	Owner        string            `json:"owner"`
	Contributors []string          `json:"contributors,omitempty"`
	Task         string            `json:"task"`
	Request      string            `json:"request"`
	From         string            `json:"from"`
	To           string            `json:"to"`
	Trace        swarm.Trace       `json:"trace,omitzero"`
}

// RefOf returns the reference to an outbox message.
func RefOf(d swarm.Delivery) OutboxRef {
	w := d.Wrapper
	return OutboxRef{
		Instance: d.Task.InstanceKey, Swarm: w.SourceSwarm, Owner: w.TaskOwner, Contributors: w.TaskContributors,
		Task: w.Payload.TaskID, Request: w.Payload.ID, From: w.Payload.Sender.Name, To: w.Payload.Recipient().Name, Trace: d.Trace,
	}
}

// Delivery returns the outbox message as [Ask].Of needs it: without its text.
func (r OutboxRef) Delivery() *swarm.Delivery {
	return &swarm.Delivery{Task: swarm.TaskKey{InstanceKey: r.Instance, Task: r.Task}, Trace: r.Trace, Wrapper: mail.Interswarm{
		SourceSwarm: r.Swarm, TaskOwner: r.Owner, TaskContributors: r.Contributors,
		Payload: mail.Payload{
			TaskID: r.Task, ID: r.Request, Sender: mail.Address{Type: mail.Agent, Name: r.From},
			Recipients: []mail.Address{{Type: mail.Agent, Name: r.To}},
		},
	}}
}
