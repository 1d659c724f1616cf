package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Encode writes JSON in which texts stay as they are: without the escapes that HTML needs.
func Encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// MustEncode is [Encode] for a value that has a form in JSON whatever it holds: one of
// texts, numbers, and JSON that was read before. It panics for another.
func MustEncode(value any) json.RawMessage {
	raw, err := Encode(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// CheckJSON returns why a text has no or more than one reading as a JSON value, or is
// nested deeper than the max_depth of a gateway: decoders take duplicate members, broken
// UTF-8 and halves of surrogate pairs, each in its own way.
func CheckJSON(text []byte, gateway string, maxDepth int) error {
	_, err := Canonical(text, AsSent, maxDepth)
	if errors.Is(err, ErrDeep) {
		return fmt.Errorf("is nested deeper than max_depth of [gateways.%s]", gateway)
	}
	return err
}
