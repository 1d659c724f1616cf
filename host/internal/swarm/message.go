package swarm

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/spec/mail"
)

// newID makes a message id outside of turns. A turn makes its ids from its own stream,
// so that a repeated turn makes the same.
func newID() string { return uuid.NewString() }

// systemMessage makes a message of the system, whose address is the swarm's name
// . An empty recipient means all agents.
func (mut *mutationBuilder) systemMessage(kind mail.Type, to, subject, body string) mail.Message {
	if to == "" {
		to = mail.ReservedAll
	}
	// The text of a failing guest need not be valid UTF-8.
	body = strings.ToValidUTF8(body, "\uFFFD")
	return newMessage(kind, messageParts{
		task: mut.Task.Key.Task, swarm: mut.def.Name, id: newID(), payloadID: newID(), at: mut.now,
		sender:     mail.Address{Type: mail.System, Name: mut.def.Name},
		recipients: []mail.Address{{Type: mail.Agent, Name: to}},
		subject:    subject, body: body,
	})
}

// sendSystem queues a system response or broadcast for one agent. cause is the id of
// the turn that made it, empty for none.
func (mut *mutationBuilder) sendSystem(kind mail.Type, to, subject, body, cause string) {
	m := mut.systemMessage(kind, to, subject, body)
	mut.insertSystemRow(m, to, cause)
}

// sendFailedAnswer queues a system response in place of the answer to a message. If that
// was a request, the response has its request_id, so that its sender can tell which.
func (mut *mutationBuilder) sendFailedAnswer(kind mail.Type, id, to, subject, body, cause string) {
	m := mut.systemMessage(mail.Response, to, subject, body)
	if kind == mail.Request {
		m.Payload.ID = id
	}
	mut.insertSystemRow(m, to, cause)
}

func (mut *mutationBuilder) insertSystemRow(m mail.Message, to, cause string) {
	mut.insertRow(Row{Agent: to, Tier: mail.Tier(m), Message: m, Origin: Origin{Door: "system"}, Cause: cause})
}

// messageParts are the parts that all kinds of message have.
type messageParts struct {
	task, swarm   string
	id, payloadID string
	at            time.Time
	sender        mail.Address
	recipients    []mail.Address
	subject, body string
}

// newMessage builds a schema-valid local message: both swarm fields name
// the local swarm.
func newMessage(kind mail.Type, e messageParts) mail.Message {
	return mail.Message{
		ID: e.id, Timestamp: mail.FormatTime(e.at), Type: kind,
		Payload: mail.Payload{
			TaskID: e.task, ID: e.payloadID, Sender: e.sender, Recipients: e.recipients,
			Subject: e.subject, Body: e.body,
			SenderSwarm: e.swarm, RecipientSwarms: []string{e.swarm},
			RoutingInfo: json.RawMessage("{}"),
		},
	}
}
