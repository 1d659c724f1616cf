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
	// Notice says that the host has written it: an end, a fault, or what people are
	// asked or have answered.
	Notice bool `json:"notice,omitempty"`
	// Post is the number of the post that it is part of, 0 for what a turn or the
	// host has sent.
	Post int64 `json:"post,omitempty"`
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

// patience is how long an answer is tried to be delivered. A task of the swarm that
// asked is seldom older, and its end comes as a letter itself.
const patience = 24 * time.Hour

// until is when an answer is given up. It is zero for what somebody here waits for:
// a request, a broadcast whose sender is told, and both ways of what people are to
// answer, which end when they are given up.
func (l Letter) until() time.Time {
	p := l.Message.Payload
	if l.Message.Type != mail.Response || p.Subject == mail.SubjectBreakpointToolCall || p.Subject == mail.SubjectActionCompleteBcast {
		return time.Time{}
	}
	return l.Since.Add(patience)
}

// dismisses reports whether a letter only tells a swarm that works for this one that
// the task is over.
func (t Task) dismisses(l Letter) bool {
	return l.Notice && l.Message.Payload.Subject == mail.SubjectTaskComplete && l.Peer != t.Caller
}

// opens is the request that waits for an answer to the letter, if one does. An
// interrupt is a request that cannot wait.
func (l Letter) opens() (OpenRequest, bool) {
	p := l.Message.Payload
	asks := l.Message.Type == mail.Request || l.Message.Type == mail.Interrupt
	if !asks || p.Sender.Type != mail.Agent || len(p.Recipients) == 0 {
		return OpenRequest{}, false
	}
	return OpenRequest{ID: p.ID, From: p.Sender.Name, To: p.Recipients[0].Name, Post: l.Post}, true
}
