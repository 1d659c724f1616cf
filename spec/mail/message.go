package mail

import (
	"encoding/json"
	"time"
)

// Type is the kind of a message, msg_type on the wire.
type Type string

// The kinds of message. A BroadcastComplete has the payload of a Broadcast and
// never crosses to another swarm.
const (
	Request           Type = "request"
	Response          Type = "response"
	Broadcast         Type = "broadcast"
	Interrupt         Type = "interrupt"
	BroadcastComplete Type = "broadcast_complete"
)

// Valid reports whether t is one of the five kinds.
func (t Type) Valid() bool { return kindOf(t) != nil }

// Message is one piece of mail (S-01). On the wire:
//
//	{"id":…,"timestamp":…,"msg_type":…,"message":{…}}
//
// Message's JSON methods are [Message.AppendJSON] and its encoding/json wrappers.
type Message struct {
	// ID is a UUID.
	ID string
	// Timestamp is an RFC 3339 date-time, kept as it was written; see [FormatTime].
	// It orders nothing: the order of mail is the order in which it was stored.
	Timestamp string
	// Type binds the shape of the payload.
	Type Type
	// Payload is what the agents see.
	Payload Payload
}

// Time returns the message's timestamp in UTC, or the zero time when m would not
// validate.
func (m Message) Time() time.Time {
	t, _ := parseTime(m.Timestamp)
	return t
}

// Payload holds the payload of any [Type]. Empty optional fields are absent on
// the wire, and the other way round: "" and [] mean the same as nothing there. A
// Payload has no JSON form of its own, since that depends on the message's type.
type Payload struct {
	// TaskID is 1 to [MaxTaskID] printable characters.
	TaskID string
	// ID is request_id, broadcast_id or interrupt_id: a UUID, except in a response,
	// where it is any string (the request_id it answers, X-14).
	ID string
	// Sender is who wrote it.
	Sender Address
	// Recipients has exactly one entry in a request or response ("recipient"), at
	// least one in all others ("recipients") (S-05).
	Recipients []Address
	// Subject and Body may be empty. Body may hold structured text.
	Subject string
	Body    string
	// SenderSwarm is optional.
	SenderSwarm string
	// RecipientSwarms is optional, with at most one entry in a request or response
	// ("recipient_swarm").
	RecipientSwarms []string
	// RoutingInfo is optional: one JSON object without insignificant whitespace.
	RoutingInfo json.RawMessage
}

// Recipient returns the first recipient, which is the only one in a request or
// response, or the zero Address.
func (p *Payload) Recipient() Address {
	if len(p.Recipients) == 0 {
		return Address{}
	}
	return p.Recipients[0]
}

// Indexes of a payload's fields in the shapes below. They are the same for every
// kind; only three keys differ.
const (
	fieldTaskID = iota
	fieldID
	fieldSender
	fieldRecipients
	fieldSubject
	fieldBody
	fieldSenderSwarm
	fieldRecipientSwarms
	fieldRoutingInfo
)

// kind is what a [Type] decides about its payload.
type kind struct {
	shape
	many   bool // "recipients" and "recipient_swarms" instead of the singular
	anyID  bool // the id need not be a UUID
	abroad bool // may travel in an Interswarm
}

func one(id string) shape {
	return shape{required: 6, keys: []string{
		"task_id", id, "sender", "recipient", "subject", "body",
		"sender_swarm", "recipient_swarm", "routing_info",
	}}
}

func several(id string) shape {
	return shape{required: 6, keys: []string{
		"task_id", id, "sender", "recipients", "subject", "body",
		"sender_swarm", "recipient_swarms", "routing_info",
	}}
}

var (
	requestKind   = &kind{shape: one("request_id"), abroad: true}
	responseKind  = &kind{shape: one("request_id"), abroad: true, anyID: true}
	broadcastKind = &kind{shape: several("broadcast_id"), abroad: true, many: true}
	interruptKind = &kind{shape: several("interrupt_id"), abroad: true, many: true}
	completeKind  = &kind{shape: several("broadcast_id"), many: true}
)

// kindOf returns nil for a type that does not exist.
func kindOf(t Type) *kind {
	switch t {
	case Request:
		return requestKind
	case Response:
		return responseKind
	case Broadcast:
		return broadcastKind
	case Interrupt:
		return interruptKind
	case BroadcastComplete:
		return completeKind
	}
	return nil
}
