package client

import (
	"encoding/json"
	"fmt"
	"strconv"

	"skep/spec/mail"
)

// Names of the events that carry an answer and end a stream.
const (
	EventComplete = "task_complete"
	EventError    = "task_error"
	eventPing     = "ping"
)

// Event is one entry of a task's log.
type Event struct {
	// Cursor is the place in the log, 0 for one that is not kept.
	Cursor int64
	Name   string
	// Timestamp is an RFC 3339 date-time as the host wrote it.
	Timestamp   string
	Description string
	// Extra is a JSON object or empty.
	Extra json.RawMessage
	// Response is the text of an answer, see [Event.Ends].
	Response string
}

// eventData is the payload of any event, on the wire.
type eventData struct {
	Timestamp   string          `json:"timestamp"`
	Description string          `json:"description"`
	Extra       json.RawMessage `json:"extra_data"`
	Response    *string         `json:"response"`
}

// MarshalJSON writes the event in the form in which a task's record holds it,
// with the payload as JSON: {"id","event","data"}. Reading it gives the same
// event.
func (e Event) MarshalJSON() ([]byte, error) {
	type data struct {
		Timestamp   string          `json:"timestamp"`
		Description string          `json:"description,omitempty"`
		Extra       json.RawMessage `json:"extra_data,omitempty"`
		Response    *string         `json:"response,omitempty"`
	}
	out := struct {
		ID    *int64 `json:"id"`
		Event string `json:"event"`
		Data  data   `json:"data"`
	}{nil, e.Name, data{e.Timestamp, e.Description, e.Extra, nil}}
	if e.Cursor > 0 {
		out.ID = &e.Cursor
	}
	if e.Ends() {
		out.Data.Response = &e.Response
	}
	return json.Marshal(out)
}

// newEvent decodes an event.
func newEvent(f frame) (Event, error) {
	e := Event{Name: f.name}
	if n, err := strconv.ParseInt(f.id, 10, 64); err == nil && n > 0 {
		e.Cursor = n
	}
	return e, e.decode(f.data)
}

func (e *Event) decode(raw []byte) error {
	var d eventData
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("event %s: %w: %w", e.Name, ErrNotMAIL, err)
	}
	e.Timestamp, e.Description, e.Extra = d.Timestamp, d.Description, d.Extra
	if d.Response != nil {
		e.Response = *d.Response
		return nil
	}
	var extra struct {
		Response string `json:"response"`
	}
	if e.Ends() && json.Unmarshal(d.Extra, &extra) == nil {
		e.Response = extra.Response
	}
	return nil
}

// Ends reports whether the event carries an answer.
func (e Event) Ends() bool { return e.Name == EventComplete || e.Name == EventError }

// Message returns the mail that a new_message event hands over.
func (e Event) Message() (mail.Message, bool) {
	if e.Name != "new_message" {
		return mail.Message{}, false
	}
	var extra struct {
		Message *mail.Message `json:"full_message"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil || extra.Message == nil {
		return mail.Message{}, false
	}
	return *extra.Message, true
}

// Recipient is the one agent to which a new_message event hands its mail over.
// It is empty for the mail that ends a task, which goes to all.
func (e Event) Recipient() string {
	var extra struct {
		Recipient string `json:"recipient"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil {
		return ""
	}
	return extra.Recipient
}

// Caller is the agent whose turn made the event, if one did.
func (e Event) Caller() string {
	var extra struct {
		Caller string `json:"caller"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil {
		return ""
	}
	return extra.Caller
}
