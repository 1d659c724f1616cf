package gateway

import (
	"time"

	"skep/host/internal/swarm"
)

// Kind is what a message from a realm wants.
type Kind string

// The kinds of messages. Asks and interrupts get an answer.
const (
	// Asks wants one answer.
	Asks Kind = "asks"
	// Tells wants no answer.
	Tells Kind = "tells"
	// Interrupts wants one answer and goes before other messages.
	Interrupts Kind = "interrupts"
	// Answers answers a message of ours, which Ask.Answers names.
	Answers Kind = "answers"
	// Resumes brings the results of calls that wait for a person.
	Resumes Kind = "resumes"
)

// Limits of an [Ask].
const (
	MaxNote = swarm.MaxNote
	MaxText = 256 << 10 // bytes of a body; what is longer is a [Part]
)

// Ask is one message from a caller.
type Ask struct {
	Kind Kind
	// ID is the foreign message id, unique for the caller. A repeat of it returns the
	// first exchange. A message without one never repeats another; its exchange has an id.
	ID string
	// Digest is a hash of the canonical foreign message, without what may differ between
	// attempts. Another digest under a used ID is refused with ErrConflict.
	Digest [32]byte
	// From is the foreign agent, without its realm; empty for users.
	From string
	// Swarm is the local swarm, To its agents; an empty To is the entrypoint. All
	// recipients share one accept; when there are several, each has an exchange of its own,
	// the others by an [OtherID].
	Swarm string
	To    []string
	// Conversation is the foreign conversation id, empty for a new one.
	Conversation string
	// Answers is the id of the question in the caller's conversation that an answer
	// answers. Of, if set, is an outbox message of ours: the message belongs to the task
	// that sent it, and an answer answers it unless Answers has the request_id of another.
	// The response to a question about it comes with the question's ID, a UUID, as its
	// request_id.
	Answers string
	Of      *swarm.Delivery
	// Sent is set where the realm has sent a message with Of by itself: it counts in the
	// realm's rate. What came as the reply to a request of ours does not.
	Sent    bool
	Subject string
	Body    string
	// Parts are binary, or longer than MaxText: they become blobs of the task, which the
	// body names.
	Parts []Part
	// Results are for Resumes: by the ids of the calls that wait.
	Results []CallResult
	// Raw is the message as it came. It is kept as a blob if the gateway has keep_raw.
	Raw []byte
	// Deadline is when the caller stops waiting; zero for none.
	Deadline time.Time
	// Hops counts the swarms that the message has passed.
	Hops int
	// Trace is from the request or the message.
	Trace swarm.Trace
	// Reply means that the answer also leaves through the outbox, beside its exchange.
	Reply bool
	// Info becomes routing_info.gateway of the message: protocol, foreign type, expected
	// answer, typed payload.
	Info map[string]any
	// Note is what answering needs, at most MaxNote bytes. It comes back in the exchange.
	Note []byte
}

// Relayed is a message from one member of a realm to another.
type Relayed struct {
	// From and To are foreign ids.
	From, To string
	// Realm is the receiver's, empty for the sender's own. Another one is of the same tenant
	// and has the right to relay, too.
	Realm string
	// Hops counts the swarms that the message has passed before this one.
	Hops int
}

// Part is a piece of a message that is not its text.
type Part struct {
	Name string
	Type string // media type
	Data []byte
}

// CallResult is what a person answered to a call that waited.
type CallResult struct {
	Call    string
	Content string
	Error   bool
}
