package swarm

import (
	"encoding/json"
	"time"

	"skep/spec/mail"
)

// OutboxMessage is one message to another swarm in the outbox of its task.
type OutboxMessage struct {
	// N numbers the outbox messages of a task from 1. Messages for one peer are
	// delivered in this order.
	N int64 `json:"n"`
	// ID is the UUID of the message at the peer, the same on every attempt.
	ID   string `json:"id"`
	Peer string `json:"peer"`
	// Message is the message as the task's log has it.
	Message mail.Message `json:"message"`
	// Notice means that the host has written it: an end, a fault, calls that wait for
	// people, or their results.
	Notice bool `json:"notice,omitempty"`
	// Post is the number of the post that sent it, 0 for a message of a turn or the
	// host.
	Post int64 `json:"post,omitempty"`
	// Since is the time when it was put into the outbox, or back into it.
	Since time.Time `json:"since"`
	Trace Trace     `json:"trace,omitzero"`
	// Answers is the key of the exchange in whose course an agent sends it to the caller,
	// or which it answers, empty for other messages.
	Answers string `json:"answers,omitempty"`
	// Dead is set when the message is not delivered any more.
	Dead *DeliveryFailure `json:"dead,omitempty"`
	// answered is the exchange that it answers. The store has not got it: nil after a restart.
	answered *answeredPost
}

// answeredPost is a post with its answer.
type answeredPost struct {
	post   PendingPost
	answer Answer
}

// DeliveryFailure is why a message could not be delivered.
type DeliveryFailure struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// OutboxKey names a task with undelivered messages for a peer.
type OutboxKey struct {
	Task TaskKey
	Peer string
}

// DeadLetter is an outbox message that is not delivered any more, with its task.
type DeadLetter struct {
	Task TaskKey
	OutboxMessage
	// Place orders the dead letters of a tenant: a later one has a greater number.
	Place int64
}

// responseLifetime is how long the delivery of a response is tried. A task of the
// requesting swarm is seldom older, and its end comes as a message itself.
const responseLifetime = 24 * time.Hour

// giveUpAt is when the delivery of a response is given up. It is zero for messages
// whose failure the task handles: a request, a broadcast, and both directions of a
// breakpoint call.
func (msg OutboxMessage) giveUpAt() time.Time {
	p := msg.Message.Payload
	if msg.Message.Type != mail.Response || p.Subject == mail.SubjectBreakpointToolCall || p.Subject == mail.SubjectActionCompleteBcast {
		return time.Time{}
	}
	return msg.Since.Add(responseLifetime)
}

// isDismissal reports whether a message only notifies a contributor of the task's end.
func (t Task) isDismissal(msg OutboxMessage) bool {
	return msg.Notice && msg.Message.Payload.Subject == mail.SubjectTaskComplete && msg.Peer != t.Caller
}

// openRequest is the request that the message opens, if it does. An interrupt is a
// request that cannot wait.
func (msg OutboxMessage) openRequest() (OpenRequest, bool) {
	p := msg.Message.Payload
	asks := msg.Message.Type == mail.Request || msg.Message.Type == mail.Interrupt
	if !asks || p.Sender.Type != mail.Agent || len(p.Recipients) == 0 {
		return OpenRequest{}, false
	}
	return OpenRequest{ID: p.ID, From: p.Sender.Name, To: p.Recipients[0].Name, Post: msg.Post}, true
}

// newOutboxMessage makes one message for a group in another swarm.
func (t *Turn) newOutboxMessage(kind mail.Type, payloadID string, group remoteGroup, subject, body string) OutboxMessage {
	var recipients []mail.Address
	for _, name := range group.names {
		recipients = append(recipients, mail.Address{Type: mail.Agent, Name: name})
	}
	m := t.newMessage(kind, payloadID, recipients, subject, body)
	m.Payload.RecipientSwarms = []string{group.swarm}
	m.Payload.RoutingInfo = routingInfo("remote_swarm", group.swarm)
	return OutboxMessage{ID: m.ID, Peer: group.swarm, Message: m, Trace: t.Trace()}
}

// routingInfo makes a routing_info of names and values.
func routingInfo(pairs ...string) json.RawMessage {
	info := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		info[pairs[i]] = pairs[i+1]
	}
	raw, _ := json.Marshal(info) // strings always encode
	return raw
}
