package toy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"skep/host/internal/gateway"
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
	Trace   string         `json:"trace,omitempty"`
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
}

const maxID = 256 // bytes

// readMessage reads a line. Members that the protocol does not have are refused.
func readMessage(raw []byte, maxDepth int) (m message, err error) {
	if !utf8.Valid(raw) {
		return m, invalid("the line is not UTF-8")
	}
	if err := checkMembers(raw, maxDepth); err != nil {
		return m, invalid("%v", err)
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

// checkMembers refuses what readers could take differently: a member that comes twice,
// more than one value, and nesting beyond a depth.
func checkMembers(raw []byte, maxDepth int) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := checkValue(dec, maxDepth); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the line has more than one value")
	}
	return nil
}

func checkValue(dec *json.Decoder, left int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if left == 0 {
		return errors.New("the line is nested too deeply")
	}
	seen := map[any]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("the member %q comes twice", name)
			}
			seen[name] = true
		}
		if err := checkValue(dec, left-1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// digest is what a repeat has too: all but the hops and the trace, which differ on another
// way.
func (m message) digest() [32]byte {
	m.Hops, m.Trace = 0, ""
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
