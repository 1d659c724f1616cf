package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object out of a request. Members that nobody asks for are
// ignored, null means absent, and names are compared exactly.
type object map[string]json.RawMessage

// parseObject reads a body that is one JSON object. It refuses what two
// readers could read differently: broken text, bytes after the value, and names
// that occur twice in one object, at any depth.
func parseObject(body []byte, depth int) (object, error) {
	if !utf8.Valid(body) {
		return nil, badRequest("error parsing request: the body is not UTF-8")
	}
	var o object
	err := json.Unmarshal(body, &o)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong), err == nil && o == nil:
		return nil, badRequest("error parsing request: must be a JSON object, got %s", typeName(body))
	case err != nil:
		return nil, badRequest("error parsing request: %s", brokenJSON(body, err, depth))
	}
	s := scan{dec: json.NewDecoder(bytes.NewReader(body)), depth: depth}
	s.dec.UseNumber()
	if err := s.value(0); err != nil {
		return nil, badRequest("error parsing request: %v", err)
	}
	return o, nil
}

// brokenJSON says where a body stops being JSON.
func brokenJSON(body []byte, err error, depth int) string {
	var syntax *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return "the body is empty, and must be a JSON object"
	case !errors.As(err, &syntax):
		return err.Error()
	case strings.Contains(syntax.Error(), "max depth"):
		return fmt.Sprintf("nested deeper than %d levels", depth)
	case strings.Contains(syntax.Error(), "unexpected end"), syntax.Offset < 1:
		return "the body is no JSON: it ends too early"
	}
	at := min(int(syntax.Offset), len(body)) - 1
	wrong, _ := utf8.DecodeRune(body[at:])
	return fmt.Sprintf("the body is no JSON: byte %d, %q, is not what may stand there", at+1, wrong)
}

// scan walks through a document that is known to be valid.
type scan struct {
	dec   *json.Decoder
	depth int
}

func (s *scan) value(level int) error {
	token, err := s.dec.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if level >= s.depth {
		return fmt.Errorf("nested deeper than %d levels", s.depth)
	}
	var seen map[string]bool
	if open == '{' {
		seen = map[string]bool{}
	}
	for s.dec.More() {
		if seen != nil {
			if err := s.name(seen); err != nil {
				return err
			}
		}
		if err := s.value(level + 1); err != nil {
			return err
		}
	}
	_, err = s.dec.Token()
	return err
}

func (s *scan) name(seen map[string]bool) error {
	token, err := s.dec.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string)
	if seen[name] {
		return fmt.Errorf("duplicate name %q", name)
	}
	seen[name] = true
	return nil
}

// get returns a member that is there and not null.
func (o object) get(name string) (json.RawMessage, bool) {
	raw, ok := o[name]
	return raw, ok && string(raw) != "null"
}

func (o object) text(name string) (string, error) {
	raw, ok := o.get(name)
	if !ok {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", badRequest("%s must be a string, got %s", name, typeName(raw))
	}
	return s, nil
}

// goesTo is a text member and what it is read into.
type goesTo struct {
	name string
	to   *string
}

// texts reads several. Where two go to one place, the later one counts unless it
// is empty.
func (o object) texts(members ...goesTo) error {
	for _, m := range members {
		text, err := o.text(m.name)
		if err != nil {
			return err
		}
		if text != "" {
			*m.to = text
		}
	}
	return nil
}

// parameter is a member whose type is looked at before anything is read.
type parameter struct {
	name, kind string
	optional   bool
}

// fits refuses an object without one of its parameters, or with one of another
// type (contract 1.3).
func (o object) fits(parameters []parameter) error {
	for _, p := range parameters {
		raw, ok := o.get(p.name)
		switch {
		case !ok && !p.optional:
			return badRequest("parameter '%s' is required", p.name)
		case ok && typeName(raw) != p.kind:
			return badRequest("parameter '%s' must be a %s, got %s", p.name, p.kind, typeName(raw))
		}
	}
	return nil
}

func (o object) flag(name string) (bool, error) {
	raw, ok := o.get(name)
	if !ok {
		return false, nil
	}
	var b bool
	if json.Unmarshal(raw, &b) != nil {
		return false, badRequest("%s must be a boolean, got %s", name, typeName(raw))
	}
	return b, nil
}

func (o object) object(name string) (object, error) {
	raw, ok := o.get(name)
	if !ok {
		return nil, nil
	}
	var inner object
	if json.Unmarshal(raw, &inner) != nil {
		return nil, badRequest("%s must be an object, got %s", name, typeName(raw))
	}
	return inner, nil
}

// typeName is a value's type in the words that MAIL's error texts use.
func typeName(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "dict"
	case '[':
		return "list"
	case '"':
		return "str"
	case 't', 'f':
		return "bool"
	case 'n':
		return "NoneType"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "float"
	}
	return "int"
}

// integer reads a number without a fraction, however it is written: 1, 1.0, 1e0.
func integer(raw json.RawMessage) (n int64, ok bool) {
	const exact = 1 << 53
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false
	}
	return int64(f), true
}
