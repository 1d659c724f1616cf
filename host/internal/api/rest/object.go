package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// object is a JSON object of a request. Null means absent, and names are compared
// exactly. The members that no handler reads are named in the answer.
type object struct {
	members map[string]json.RawMessage
	read    map[string]*object
}

func newObject(members map[string]json.RawMessage) *object {
	return &object{members: members, read: map[string]*object{}}
}

// parseObject reads a body that is one JSON object. It refuses what two parsers
// could read differently: invalid text, bytes after the value, and duplicate
// names at any depth.
func parseObject(body []byte, depth int) (*object, error) {
	if !utf8.Valid(body) {
		return nil, badRequest("error parsing request: the body is not UTF-8")
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(body, &members)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong), err == nil && members == nil:
		return nil, badRequest("error parsing request: must be a JSON object, got %s", typeName(body))
	case err != nil:
		return nil, badRequest("error parsing request: %s", brokenJSON(body, err, depth))
	}
	if halfSurrogate(body) {
		return nil, badRequest("error parsing request: half a surrogate pair in a string")
	}
	s := duplicateScanner{dec: json.NewDecoder(bytes.NewReader(body)), depth: depth}
	s.dec.UseNumber()
	if err := s.scanValue(0); err != nil {
		return nil, badRequest("error parsing request: %v", err)
	}
	return newObject(members), nil
}

// brokenJSON describes where a body stops being JSON.
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

// halfSurrogate reports whether a JSON text has half of a UTF-16 surrogate pair, which
// encoding/json would replace by U+FFFD (https://www.rfc-editor.org/rfc/rfc8259#section-8.2).
func halfSurrogate(body []byte) bool {
	for i := bytes.IndexByte(body, '\\'); i >= 0 && i+1 < len(body); {
		r, length := escapedUnit(body[i:]), 2
		if utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, escapedUnit(body[i+6:])) == utf8.RuneError {
				return true
			}
			length = 12
		}
		next := bytes.IndexByte(body[i+length:], '\\')
		if next < 0 {
			return false
		}
		i += length + next
	}
	return false
}

// escapedUnit returns the code unit of the \uXXXX at the start of b, or 0.
func escapedUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// duplicateScanner looks for duplicate names in a valid document.
type duplicateScanner struct {
	dec   *json.Decoder
	depth int
}

func (s *duplicateScanner) scanValue(level int) error {
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
			if err := s.scanName(seen); err != nil {
				return err
			}
		}
		if err := s.scanValue(level + 1); err != nil {
			return err
		}
	}
	_, err = s.dec.Token()
	return err
}

func (s *duplicateScanner) scanName(seen map[string]bool) error {
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

// get returns a member that is present and not null.
func (o *object) get(name string) (json.RawMessage, bool) {
	raw, ok := o.members[name]
	if _, again := o.read[name]; !again {
		o.read[name] = nil
	}
	return raw, ok && string(raw) != "null"
}

// unread lists the paths of the members that were not read, in order.
func (o *object) unread() (paths []string) {
	for name := range o.members {
		inner, read := o.read[name]
		if !read {
			paths = append(paths, name)
		}
		if inner != nil {
			for _, path := range inner.unread() {
				paths = append(paths, name+"."+path)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

func (o *object) str(name string) (string, error) {
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

// textField is a text member and its destination.
type textField struct {
	name   string
	target *string
}

// readTexts reads several text members. Of two with one destination the later
// counts, unless it is empty; an earlier one that differs is ignored.
func (o *object) readTexts(members ...textField) error {
	filled := map[*string]string{}
	for _, m := range members {
		text, err := o.str(m.name)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		if earlier := filled[m.target]; earlier != "" && *m.target != text {
			delete(o.read, earlier)
		}
		*m.target, filled[m.target] = text, m.name
	}
	return nil
}

// parameter is a member whose type is checked before parsing.
type parameter struct {
	name, kind string
	optional   bool
}

// checkParameters refuses an object that lacks a required parameter or has one of
// another type.
func (o *object) checkParameters(parameters []parameter) error {
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

func (o *object) boolean(name string) (bool, error) {
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

func (o *object) object(name string) (*object, error) {
	raw, ok := o.get(name)
	if !ok {
		return newObject(nil), nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, badRequest("%s must be an object, got %s", name, typeName(raw))
	}
	inner := newObject(members)
	o.read[name] = inner
	return inner, nil
}

// typeName returns a value's type as MAIL's error texts name it (Python's names).
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

// parseInteger reads a number without a fraction, in any notation: 1, 1.0, 1e0.
func parseInteger(raw json.RawMessage) (n int64, ok bool) {
	const exact = 1 << 53
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false
	}
	return int64(f), true
}
