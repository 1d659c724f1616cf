package swarm

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/spec/mail"
)

// newID makes a message id outside of turns. Ids of a turn come from its own
// stream, so that a turn run again makes the same.
func newID() string { return uuid.NewString() }

// systemMessage makes a message of the system, whose address is the swarm's
// name. An empty recipient means everybody.
func (s *step) systemMessage(kind mail.Type, to, subject, body string) mail.Message {
	if to == "" {
		to = mail.ReservedAll
	}
	// What a guest says as it fails need not be text.
	body = strings.ToValidUTF8(body, "\uFFFD")
	return compose(kind, envelope{
		task: s.Task.Key.Task, swarm: s.def.Name, id: newID(), payloadID: newID(), at: s.now,
		sender:     mail.Address{Type: mail.System, Name: s.def.Name},
		recipients: []mail.Address{{Type: mail.Agent, Name: to}},
		subject:    subject, body: body,
	})
}

// sendSystem queues a system response or broadcast for one agent. cause names
// the turn that made it, empty when none did.
func (s *step) sendSystem(kind mail.Type, to, subject, body, cause string) {
	m := s.systemMessage(kind, to, subject, body)
	s.insert(Row{Agent: to, Tier: mail.Tier(m), Message: m, Origin: Origin{Door: "system"}, Cause: cause})
}

// envelope is what all kinds of message have in common.
type envelope struct {
	task, swarm   string
	id, payloadID string
	at            time.Time
	sender        mail.Address
	recipients    []mail.Address
	subject, body string
}

// compose builds a schema-valid local message: both swarm fields name
// the local swarm.
func compose(kind mail.Type, e envelope) mail.Message {
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
