package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// checkJSON returns why a text has no or more than one reading as a JSON value, or is
// nested too deeply. The library's decoder takes duplicate members and broken UTF-8.
func checkJSON(text []byte, depth int) error {
	if !utf8.Valid(text) {
		return errors.New("is not valid UTF-8")
	}
	if !json.Valid(text) {
		return errors.New("is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := checkValue(d, depth); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("has more than one JSON value")
	}
	return nil
}

// checkValue reads one value.
func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == 0 {
		return errors.New("is nested deeper than max_depth of [gateways.a2a]")
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
