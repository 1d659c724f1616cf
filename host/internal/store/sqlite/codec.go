package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// codecJSON marks a body of plain JSON. Later codecs compress or seal.
const codecJSON = 0x01

// maxBody keeps a body below the engine's own limit on one value, so that it
// is refused on its caller's goroutine and not inside a group.
const maxBody = 256 << 20

var errBody = errors.New("body cannot be read")

// encode renders v as a body. Markup characters stay as they are: the
// escapes that HTML needs would only make bodies larger here.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte(codecJSON)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return checkBody(bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
}

// wrap makes a body of JSON that is kept byte for byte.
func wrap(raw json.RawMessage) ([]byte, error) {
	return checkBody(append([]byte{codecJSON}, raw...))
}

func checkBody(body []byte) ([]byte, error) {
	if len(body) > maxBody {
		return nil, fmt.Errorf("body of %d bytes, at most %d are kept", len(body), maxBody)
	}
	return body, nil
}

// unwrap returns the JSON of a body.
func unwrap(body []byte) (json.RawMessage, error) {
	if len(body) == 0 {
		return nil, fmt.Errorf("%w: it is empty, so the file is damaged", errBody)
	}
	if body[0] != codecJSON {
		return nil, fmt.Errorf("%w: codec 0x%02x is unknown to this version of skep", errBody, body[0])
	}
	return body[1:], nil
}

// decode reads a body into v.
func decode(body []byte, v any) error {
	raw, err := unwrap(body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	return nil
}

// unlimited reads what we wrote. Limits are for what comes in by a door, and a
// door's may be wider than the default.
var unlimited = mail.ParseOptions{Limits: mail.Limits{
	Bytes: math.MaxInt, Depth: math.MaxInt, Recipients: math.MaxInt,
}}

func decodeEntry[T any](e entry) (v T, err error) {
	err = decode(e.body, &v)
	return v, err
}

// decodeRow reads a queue row, whose message has limits when it reads itself.
func decodeRow(stored row) (swarm.Row, error) {
	var r struct {
		swarm.Row
		Message json.RawMessage `json:"message"`
	}
	if err := decode(stored.body, &r); err != nil {
		return swarm.Row{}, err
	}
	var err error
	if r.Row.Message, err = unlimited.Message(r.Message); err != nil {
		return swarm.Row{}, fmt.Errorf("%w: %w", errBody, err)
	}
	r.Row.N, r.Row.Stash = stored.seq, stored.stash
	return r.Row, nil
}
