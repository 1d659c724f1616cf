package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// CheckJSON returns why a text has no or more than one reading as a JSON value, or is
// nested deeper than the max_depth of a gateway: decoders take duplicate members and broken
// UTF-8, each in its own way.
func CheckJSON(text []byte, gateway string, maxDepth int) error {
	if !utf8.Valid(text) {
		return errors.New("is not valid UTF-8")
	}
	if !json.Valid(text) {
		return errors.New("is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := checkValue(d, maxDepth)
	if errors.Is(err, errDeep) {
		return fmt.Errorf("is nested deeper than max_depth of [gateways.%s]", gateway)
	}
	return err
}

var errDeep = errors.New("too deep")

// checkValue reads one value.
func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth == 0 {
		return errDeep
	}
	seen := map[any]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("has the member %q twice", name)
			}
			seen[name] = true
		}
		if err := checkValue(d, depth-1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
