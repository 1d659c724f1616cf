package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"skep/host/internal/gateway/wire"
	"skep/spec/mail"
)

// Fault is what is wrong with a message.
type Fault struct {
	// Code is a code of the document, Text what its sender is shown.
	Code, Text string
	// Member is where, Expected what is right there, as "payload" and "an object".
	Member, Expected string
}

// Error implements error.
func (f *Fault) Error() string { return f.Text }

// Codes of a [Fault].
const (
	InvalidFormat      = "INVALID_MESSAGE_FORMAT"
	UnsupportedVersion = "UNSUPPORTED_VERSION"
)

func invalid(member, expected string) *Fault {
	return &Fault{Code: InvalidFormat, Text: member + " must be " + expected, Member: member, Expected: expected}
}

// Reader reads messages.
type Reader struct {
	// Strict refuses ids that are no UUID of version 4, and members that are left out.
	Strict bool
	// Depth bounds the levels of a payload.
	Depth int
}

// envelopeLevels are the levels of a message above its payload.
const envelopeLevels = 1

// maxBeside bounds what a message has beside its payload, in bytes: lists of texts there take 33
// times their size from the heap.
const maxBeside = 256 << 10

// payloadOf is the payload of a message as it is written, nil for none.
func payloadOf(text []byte) (payload []byte) {
	for name, value := range wire.EachMember(text) {
		if string(name) == `"payload"` {
			payload = value
		}
	}
	return payload
}

// Read reads a message. With a fault it returns by what a refusal names the message.
func (r Reader) Read(text []byte) (m Message, err error) {
	if f := r.read(text, &m); f != nil {
		return identify(text), f
	}
	return m, nil
}

func (r Reader) read(text []byte, m *Message) *Fault {
	// The payload is within the message; metadata and sender have few levels.
	if err := wire.CheckJSON(text, "iacp", r.Depth+envelopeLevels); err != nil {
		return &Fault{Code: InvalidFormat, Text: "the message " + err.Error(), Member: "message", Expected: "JSON with one reading"}
	}
	if rest := len(text) - len(payloadOf(text)); rest > maxBeside {
		reason := fmt.Sprintf("the message has %d bytes beside its payload, more than %d", rest, maxBeside)
		return &Fault{Code: InvalidFormat, Text: reason, Member: "message", Expected: "at most 256 KiB beside its payload"}
	}
	if err := json.Unmarshal(text, m); err != nil {
		return typeFault(err)
	}
	return r.check(*m)
}

// typeFault names the member of another type.
func typeFault(err error) *Fault {
	wrong := new(json.UnmarshalTypeError)
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return invalid("message", "an object with the members of a message")
	}
	form := "an object"
	switch wrong.Type.Kind() {
	case reflect.String:
		form = "a text"
	case reflect.Bool:
		form = "true or false"
	case reflect.Int:
		form = "a whole number"
	case reflect.Float64:
		form = "a number"
	case reflect.Slice:
		form = "a list"
	}
	return invalid(wrong.Field, form)
}

func (r Reader) check(m Message) *Fault {
	major, _, _ := strings.Cut(m.Version, ".")
	switch {
	case m.Version == "":
		return invalid("iacp_version", `"1.0"`)
	case major != "1" || r.Strict && m.Version != Version:
		return &Fault{Code: UnsupportedVersion, Text: fmt.Sprintf("the version %.20q is not supported", m.Version), Member: "iacp_version", Expected: `"1.0"`}
	case !r.isID(m.ID):
		return invalid("message_id", "a UUID"+map[bool]string{true: " of version 4"}[r.Strict])
	case m.Type.Class() == 0:
		return unknownType()
	case !IsAgent(m.Sender.ID):
		return invalid("sender.agent_id", AgentForm)
	case !isText(m.Conversation), r.Strict && m.Conversation != "" && !r.isID(m.Conversation):
		return invalid("conversation_id", "an id of at most 256 characters")
	case !isText(m.Parent):
		return invalid("parent_message_id", "an id of at most 256 characters")
	case !bytes.HasPrefix(bytes.TrimSpace(m.Payload), []byte("{")) && (r.Strict || m.Type.Class() != Control || m.Payload != nil):
		return invalid("payload", "an object")
	}
	if at, err := time.Parse(time.RFC3339Nano, m.Timestamp); err != nil || at.IsZero() {
		return invalid("timestamp", "a time as in 2025-09-21T10:30:00Z")
	}
	if f := checkRecipient(m); f != nil {
		return f
	}
	return checkMetadata(m.Meta())
}

// isID reports whether an id is a UUID; the document's own are not all of version 4 (D-I4).
func (r Reader) isID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && len(id) == 36 && (!r.Strict || parsed.Version() == 4)
}

// AgentForm is what [IsAgent] wants, for refusals.
const AgentForm = "1 to 64 characters"

// IsAgent reports whether a text is an agent_id: 1 to 64 characters that can be printed (I-005).
func IsAgent(id string) bool {
	return id != "" && utf8.RuneCountInString(id) <= maxAgent && mail.Printable(id)
}

func isText(id string) bool { return len(id) <= maxID && mail.Printable(id) }

func unknownType() *Fault {
	known := Types()
	slices.Sort(known)
	f := invalid("message_type", "a known type")
	f.Expected = ""
	for _, t := range known {
		f.Expected += string(t) + " "
	}
	f.Expected = strings.TrimSpace(f.Expected)
	return f
}

// checkRecipient: a message is for one agent, a group or all; only what is about the
// connection may be for nobody, and an answer goes to who has asked (D-I5).
func checkRecipient(m Message) *Fault {
	to := m.Recipient
	class := m.Type.Class()
	if to == nil || to.IsEmpty() {
		if class == Asks || class == Tells {
			return invalid("recipient", "an agent_id, a group, or broadcast")
		}
		return nil
	}
	ways := 0
	for _, way := range []bool{to.ID != "", to.Broadcast, to.Group != nil, len(to.IDs) > 0} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		return invalid("recipient", "one of agent_id, agent_ids, group and broadcast")
	case to.ID != "" && !IsAgent(to.ID):
		return invalid("recipient.agent_id", AgentForm)
	case len(to.IDs) > maxIDs || slices.ContainsFunc(to.IDs, func(id string) bool { return !IsAgent(id) }):
		return invalid("recipient.agent_ids", fmt.Sprintf("at most %d ids of 1 to 64 characters", maxIDs))
	case to.Group != nil && (len(to.Group.Capabilities)+len(to.Group.Types) == 0 || to.Group.Match != "" && to.Group.Match != "all" && to.Group.Match != "any"):
		return invalid("recipient.group", "capabilities or agent_types, and match all or any")
	}
	return nil
}

// maxIDs bounds the agents that a message names.
const maxIDs = 256

// Priorities are the words of the document, the least urgent first (I-002). A message
// without one is [Normal].
var Priorities = []string{"low", Normal, "high", "urgent"}

// Normal is the priority of a message without one.
const Normal = "normal"

func checkMetadata(meta Metadata) *Fault {
	if meta.Expires != "" {
		if _, err := time.Parse(time.RFC3339Nano, meta.Expires); err != nil {
			return invalid("metadata.expires_at", "a time as in 2025-09-21T10:30:00Z")
		}
	}
	switch {
	case meta.Priority != "" && !slices.Contains(Priorities, meta.Priority):
		return invalid("metadata.priority", "low, normal, high or urgent")
	case meta.ResponseTimeout != nil && (*meta.ResponseTimeout <= 0 || *meta.ResponseTimeout > maxSeconds):
		return invalid("metadata.response_timeout", "seconds, more than 0")
	case meta.Hops < 0:
		return invalid("metadata.hops", "0 or more")
	}
	return nil
}

// maxSeconds is the longest time in a message: a month.
const maxSeconds = 30 * 24 * 3600

// Deadline is when the sender stops waiting, zero for never.
func (m Message) Deadline(now time.Time) (at time.Time) {
	meta := m.Meta()
	at, _ = time.Parse(time.RFC3339Nano, meta.Expires)
	if s := meta.ResponseTimeout; s != nil && m.Owed() {
		if by := now.Add(time.Duration(*s * float64(time.Second))); at.IsZero() || by.Before(at) {
			at = by
		}
	}
	return at
}

// CheckDepth reports whether JSON has at most so many levels.
func CheckDepth(text []byte, levels int) bool { return wire.CheckJSON(text, "iacp", levels) == nil }
