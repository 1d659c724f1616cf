package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"skep/host/internal/gateway/wire"
	"skep/spec/mail"
)

// Limits of the texts in a message, in bytes.
const (
	MaxID      = 256
	maxSecret  = 16 << 10
	maxTimeout = 7 * 24 * time.Hour
)

// envelopeLevels are the levels of the JSON above the payload.
const envelopeLevels = 2

// Reader reads messages.
type Reader struct {
	// Strict refuses a message without a member that the document demands.
	Strict bool
	// NeedsID refuses a message without an id.
	NeedsID bool
	// Depth bounds the levels of a payload.
	Depth int
}

// Received is a message that was read.
type Received struct {
	Message
	// Token is AMP or AIP, Minor the minor version of its sender.
	Token string
	Minor string
	// object is the message as it came, without the wrapper.
	object []byte
}

var protocols = regexp.MustCompile(`^(AMP|AIP)/([0-9]{1,9})\.([0-9]{1,9})$`)

// Read reads a message. With a fault it returns what could be read: the token and the id,
// if there are some. Its errors are faults.
func (r Reader) Read(text []byte) (in Received, err error) {
	in.Token = AMP
	if err := wire.CheckJSON(text, "amp", r.Depth+envelopeLevels); err != nil {
		return in, Faultf(InvalidSchema, ReasonMalformed, "the message %v", err)
	}
	var outer wrapper
	if err := json.Unmarshal(text, &outer); err != nil {
		return in, Faultf(InvalidSchema, ReasonMalformed, "the message is no object with protocol and message")
	}
	if err := in.readProtocol(outer); err != nil {
		return in, err
	}
	in.object = outer.Message
	if err := json.Unmarshal(outer.Message, &in.Message); err != nil {
		in.Message = Message{ID: glimpseID(outer.Message)}
		return in, Faultf(InvalidSchema, ReasonMalformed, "message%s", TypeFault(err))
	}
	if f := r.check(&in); f != nil {
		return in, f
	}
	return in, nil
}

// readProtocol reads the token and the version. An object without a message is of a
// protocol that shares the token.
func (in *Received) readProtocol(outer wrapper) error {
	m := protocols.FindStringSubmatch(outer.Protocol)
	switch {
	case m == nil && outer.Protocol == "":
		return Faultf(InvalidSchema, ReasonProtocol, `protocol is missing: it must be "AMP/1.0" or "AIP/1.0"`)
	case m == nil:
		return Faultf(InvalidSchema, ReasonProtocol, `protocol is %.40q: it must be "AMP/1.0" or "AIP/1.0"`, outer.Protocol)
	}
	in.Token, in.Minor = m[1], m[3]
	if m[2] != "1" {
		f := Faultf(InvalidSchema, ReasonVersion, "version %s of %s is not spoken here", m[2]+"."+m[3], in.Token)
		f.Details = map[string]any{"supported_versions": []string{Version}}
		in.ID = glimpseID(outer.Message)
		return f
	}
	if !bytes.HasPrefix(bytes.TrimSpace(outer.Message), []byte("{")) {
		return Faultf(InvalidSchema, ReasonProtocol, "there is no object message: a flat message is of another protocol with this token")
	}
	return nil
}

// glimpseID is the id of a message that cannot be read, empty for none.
func glimpseID(object []byte) string {
	var found struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(object, &found) != nil || !isText(found.ID, MaxID) {
		return ""
	}
	return found.ID
}

// TypeFault names the member of another type, after the name of what was read.
func TypeFault(err error) string {
	wrong := new(json.UnmarshalTypeError)
	switch {
	case !errors.As(err, &wrong):
		return ": cannot be read"
	case wrong.Field == "":
		return fmt.Sprintf(": is a %.100s", wrong.Value)
	default:
		return fmt.Sprintf(".%s: is a %.100s", wrong.Field, wrong.Value)
	}
}

// check refuses values that no answer could return, and in strict what is left out.
func (r Reader) check(in *Received) *Fault {
	m := &in.Message
	texts := []struct {
		name, value string
		needed      bool
	}{
		{"id", m.ID, r.Strict || r.NeedsID}, {"timestamp", m.Timestamp, r.Strict}, {"source.agent_id", m.Source.Agent, r.Strict},
		{"source.session_id", m.Source.Session, false}, {"destination.agent_id", m.Destination.Agent, false},
		{"destination.capability", m.Destination.Capability, false}, {"headers.correlation_id", m.Headers.Correlation, false},
	}
	for _, t := range texts {
		switch {
		case t.value == "" && t.needed:
			return Faultf(InvalidSchema, ReasonMalformed, "message.%s is missing", t.name)
		case !isText(t.value, MaxID):
			if t.name == "id" {
				m.ID = ""
			}
			return Faultf(InvalidSchema, ReasonMalformed, "message.%s must have at most %d printable bytes", t.name, MaxID)
		}
	}
	switch m.Type {
	case Request, Response, Event, Error:
	default:
		return Faultf(InvalidSchema, ReasonMalformed, "message.type must be request, response, event or error")
	}
	if _, err := time.Parse(time.RFC3339, m.Timestamp); err != nil && m.Timestamp != "" {
		return Faultf(InvalidSchema, ReasonMalformed, "message.timestamp must be a time as in 2025-01-27T10:00:00Z")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(m.Payload), []byte("{")) {
		return Faultf(InvalidSchema, ReasonMalformed, "message.payload must be an object")
	}
	return checkHeaders(&m.Headers)
}

// Bounds of a priority; one beyond them is the nearest (D-M5).
const (
	minPriority = 0
	maxPriority = 10
)

func checkHeaders(h *Headers) *Fault {
	if t := h.Timeout; t != nil && !(*t > 0 && *t <= float64(maxTimeout.Milliseconds())) {
		return Faultf(InvalidSchema, ReasonMalformed, "message.headers.timeout_ms must be more than 0, and at most %d", maxTimeout.Milliseconds())
	}
	if len(h.Hints) == 0 {
		h.Hints = nil // as if they were left out
	}
	if p := h.Priority; p != nil {
		*p = min(max(*p, minPriority), maxPriority)
	}
	if a := h.Authentication; a != nil && len(a.Secret()) > maxSecret {
		return Faultf(InvalidSchema, ReasonMalformed, "message.headers.authentication has more than %d bytes", maxSecret)
	}
	return nil
}

func isText(text string, most int) bool { return len(text) <= most && mail.Printable(text) }

// Deadline is when the sender of a message that came at a time stops waiting; zero for never.
func (m Message) Deadline(came time.Time) time.Time {
	if m.Headers.Timeout == nil {
		return time.Time{}
	}
	return came.Add(time.Duration(*m.Headers.Timeout * float64(time.Millisecond)))
}
