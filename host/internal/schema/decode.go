package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"skep/spec/mail"
)

var (
	errUTF8      = errors.New("is not valid UTF-8")
	errSurrogate = errors.New("has half a surrogate pair in a string")
)

// decode reads one JSON value that has one reading: valid UTF-8, no trailing
// bytes, no duplicate keys, no half characters, within the default limits of
// package mail. It shares no code with the parser there, which it is to check.
func decode(raw []byte) (any, error) { return decodeWith(raw, false) }

// decodeWith keeps the values of numbers where schemas look at them.
func decodeWith(raw []byte, numbers bool) (any, error) {
	if len(raw) > mail.DefaultBytes {
		return nil, fmt.Errorf("%w: has %d bytes, at most %d are taken", mail.ErrLimit, len(raw), mail.DefaultBytes)
	}
	if !utf8.Valid(raw) {
		return nil, errUTF8
	}
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	if halfSurrogate(raw) {
		return nil, errSurrogate
	}
	d := decoder{json.NewDecoder(bytes.NewReader(raw)), numbers}
	d.UseNumber()
	return d.value(1)
}

// decoder builds the value of a text that is known to be valid.
type decoder struct {
	*json.Decoder
	numbers bool
}

func (d decoder) value(depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth > mail.DefaultDepth {
			return nil, fmt.Errorf("%w: is nested deeper than %d levels", mail.ErrLimit, mail.DefaultDepth)
		}
		if t == '[' {
			return d.array(depth)
		}
		return d.object(depth)
	case json.Number:
		if d.numbers {
			return plainNumber(t)
		}
		// The library computes a number's exact value just to name its type, and for
		// 1e999999999 that takes longer than anyone can wait. No schema looks at a
		// number (the lint sees to that), so any number will do.
		return json.Number("0"), nil
	}
	return t, nil
}

// plainNumber refuses a number whose exact value would take long to compute.
func plainNumber(n json.Number) (any, error) {
	if _, err := n.Float64(); err != nil || len(n) > maxNumber {
		return nil, fmt.Errorf("%w: a number that is too large or has more than %d characters", mail.ErrLimit, maxNumber)
	}
	if _, exp, found := strings.Cut(strings.ToLower(string(n)), "e"); found && len(exp) > 4 {
		return json.Number("0"), nil // too small to tell from nothing
	}
	return n, nil
}

// maxNumber bounds the characters of a number.
const maxNumber = 64

func (d decoder) array(depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func (d decoder) object(depth int) (any, error) {
	obj := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		if _, twice := obj[key]; twice {
			return nil, fmt.Errorf("%s: occurs twice", mail.PathKey(key))
		}
		if obj[key], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return obj, err
}

// halfSurrogate reports whether valid JSON has a \u escape for half a pair, which
// the decoder would turn into U+FFFD.
func halfSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		r := unit(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		if !bytes.HasPrefix(raw[i+1:], []byte(`\u`)) ||
			utf16.DecodeRune(r, unit(raw[i+3:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// unit returns the value of four hex digits.
func unit(b []byte) rune {
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
