package toy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// message is a line that one side sends to the other.
type message struct {
	ID      string         `json:"id"`
	Kind    string         `json:"kind,omitempty"`
	From    string         `json:"from,omitempty"`
	To      string         `json:"to,omitempty"`
	Thread  string         `json:"thread,omitempty"`
	Re      string         `json:"re,omitempty"`
	Subject string         `json:"subject,omitempty"`
	Text    string         `json:"text,omitempty"`
	Parts   []part         `json:"parts,omitempty"`
	By      *time.Time     `json:"by,omitempty"`
	Hops    int            `json:"hops,omitempty"`
	Trace   swarm.Trace    `json:"trace,omitzero"`
	Push    bool           `json:"push,omitempty"`
	X       map[string]any `json:"x,omitempty"`
}

type part struct {
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`
	Data []byte `json:"data"`
}

// status is the state of a message, and the last line of a stream.
type status struct {
	ID        string         `json:"id"`
	Thread    string         `json:"thread,omitempty"`
	State     string         `json:"state"`
	From      string         `json:"from,omitempty"`
	Subject   string         `json:"subject,omitempty"`
	Text      string         `json:"text,omitempty"`
	Parts     []part         `json:"parts,omitempty"`
	X         map[string]any `json:"x,omitempty"`
	Questions []question     `json:"questions,omitempty"`
}

// The states of a message.
const (
	working = "working"
	asks    = "asks"
)

type question struct {
	ID     string `json:"id"`
	From   string `json:"from,omitempty"`
	Text   string `json:"text"`
	Person bool   `json:"person,omitempty"`
}

// piece is a line of a stream before the last.
type piece struct {
	N        *int64   `json:"n,omitempty"`
	Chunk    *string  `json:"chunk,omitempty"`
	Progress *string  `json:"progress,omitempty"`
	Fraction *float64 `json:"fraction,omitempty"`
}

// states are the states by the outcomes of exchanges.
var states = map[gateway.Outcome]string{
	gateway.Done: "done", gateway.NeedsInput: asks, gateway.Failed: "failed", gateway.TimedOut: "timed_out", gateway.Cancelled: "cancelled",
}

// kinds are the kinds of messages.
var kinds = map[string]gateway.Kind{
	"": gateway.Asks, "ask": gateway.Asks, "tell": gateway.Tells, "interrupt": gateway.Interrupts, "answer": gateway.Answers, "result": gateway.Resumes,
}

// refusals are the errors of the runtime as the protocol has them.
var refusals = []struct {
	err    error
	code   string
	status int
}{
	{gateway.ErrUnknown, "unknown", http.StatusNotFound},
	{gateway.ErrConflict, "conflict", http.StatusConflict},
	{gateway.ErrDenied, "denied", http.StatusForbidden},
	{gateway.ErrInvalid, "invalid", http.StatusBadRequest},
	{gateway.ErrBusy, "busy", http.StatusTooManyRequests},
	{gateway.ErrDraining, "stopping", http.StatusServiceUnavailable},
	{gateway.ErrElsewhere, "stopping", http.StatusServiceUnavailable},
}

const maxID = 256 // bytes

// readMessage reads a line. Members that the protocol does not have are refused.
func readMessage(raw []byte, maxDepth int) (m message, err error) {
	if err := wire.CheckJSON(raw, Name, maxDepth); err != nil {
		return m, invalid("the line %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, invalid("the line is no message: %v", err)
	}
	if _, known := kinds[m.Kind]; !known {
		return m, invalid("unknown kind %q", m.Kind)
	}
	if m.ID == "" || len(m.ID) > maxID {
		return m, invalid("id must have 1 to %d bytes", maxID)
	}
	return m, nil
}

// digest is what a repeat has too: all but the hops and the trace, which differ on another
// way.
func (m message) digest() [32]byte {
	m.Hops, m.Trace = 0, swarm.Trace{}
	return sha256.Sum256(encode(m))
}

// encode writes a line. What has come as JSON can be written.
func encode(v any) []byte {
	raw, _ := json.Marshal(v)
	return append(raw, '\n')
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", gateway.ErrInvalid, fmt.Sprintf(format, args...))
}
