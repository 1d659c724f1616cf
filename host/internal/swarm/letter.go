package swarm

import (
	"time"

	"skep/spec/mail"
)

// Letter is one message on its way to another swarm, in the outbox of its task.
type Letter struct {
	// N numbers the letters of a task from 1. Those for one peer are delivered in
	// this order.
	N int64 `json:"n"`
	// ID is a UUID under which the peer gets the message, the same on every
	// attempt.
	ID   string `json:"id"`
	Peer string `json:"peer"`
	// Message is as the task's log has it.
	Message mail.Message `json:"message"`
	// Notice says that the host tells a swarm how the task ended: no agent waits
	// to hear what became of it.
	Notice bool `json:"notice,omitempty"`
	// Since is when it was put into the outbox, or back into it.
	Since time.Time `json:"since"`
	Trace string    `json:"trace,omitempty"`
	// Dead is set when nobody tries to deliver it any more.
	Dead *Death `json:"dead,omitempty"`
}

// Death is why a letter could not be delivered.
type Death struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// Outbox names a task with letters that are to be delivered to a peer.
type Outbox struct {
	Task TaskKey
	Peer string
}

// DeadLetter is a letter of a task that nobody tries to deliver any more.
type DeadLetter struct {
	Task TaskKey
	Letter
	// Place is where it stands in the list of its tenant: a later one has a
	// greater number.
	Place int64
}

// opens is the request that waits for an answer to the letter, if one does. An
// interrupt is a request that cannot wait.
func (l Letter) opens() (OpenRequest, bool) {
	p := l.Message.Payload
	asks := l.Message.Type == mail.Request || l.Message.Type == mail.Interrupt
	if !asks || p.Sender.Type != mail.Agent || len(p.Recipients) == 0 {
		return OpenRequest{}, false
	}
	return OpenRequest{ID: p.ID, From: p.Sender.Name, To: p.Recipients[0].Name}, true
}
