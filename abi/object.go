package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose members are read one by one, by their exact
// names; null is as if absent. Unknown members pass, unless they differ from
// a known name in case alone.
type object struct {
	path    string // what stands before a member's name, as in "agents[0]."
	members map[string]json.RawMessage
	fault   *error // the first one of the whole text
}

// openObject reads the outermost object of a text. Its error is that no members
// can be told; later ones are kept in fault.
func openObject(raw []byte, known ...string) (object, error) {
	if !utf8.Valid(raw) {
		return object{}, errors.New("not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return object{}, fmt.Errorf("not JSON: %w", err)
	}
	if whole[0] != '{' {
		return object{}, fmt.Errorf("must be an object, not %s", kindOf(whole))
	}
	o := object{fault: new(error)}
	o.read(whole, known)
	return o, *o.fault
}

// read takes the members of an object, which is known to be JSON.
func (o *object) read(raw []byte, known []string) {
	o.members = map[string]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token()
	for dec.More() {
		var value json.RawMessage
		token, _ := dec.Token()
		name, _ := token.(string)
		_ = dec.Decode(&value)
		if _, twice := o.members[name]; twice {
			o.failf("%s%s is there twice", o.path, member(name))
		}
		o.members[name] = value
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				o.failf("%s%s must be written %s", o.path, name, k)
			}
		}
	}
}

func (o object) failf(format string, args ...any) {
	if *o.fault == nil {
		*o.fault = fmt.Errorf(format, args...)
	}
}

// raw is a member as it is written; nil where it is absent or null.
func (o object) raw(name string) json.RawMessage {
	if v := o.members[name]; !bytes.Equal(v, []byte("null")) {
		return v
	}
	return nil
}

// into reads a member into a plain Go value, which stays where it is absent.
func (o object) into(name string, value any, want string) {
	raw := o.raw(name)
	if raw != nil && json.Unmarshal(raw, value) != nil {
		o.failf("%s%s must be %s, not %s", o.path, name, want, kindOf(raw))
	}
}

func (o object) text(name string) (s string) {
	o.into(name, &s, "a text")
	return s
}

func (o object) texts(name string) (list []string) {
	for i, raw := range o.list(name) {
		var s *string
		if json.Unmarshal(raw, &s) != nil || s == nil {
			o.failf("%s%s[%d] must be a text, not %s", o.path, name, i, kindOf(raw))
			return nil
		}
		list = append(list, *s)
	}
	return list
}

func (o object) number(name string) (n int) {
	o.into(name, &n, "a whole number")
	return n
}

func (o object) flag(name string) (b bool) {
	o.into(name, &b, "true or false")
	return b
}

func (o object) list(name string) (items []json.RawMessage) {
	o.into(name, &items, "a list")
	return items
}

// objects reads a list of objects.
func (o object) objects(name string, known []string, each func(object)) {
	for i, raw := range o.list(name) {
		at := fmt.Sprintf("%s%s[%d]", o.path, name, i)
		if raw[0] != '{' {
			o.failf("%s must be an object, not %s", at, kindOf(raw))
			return
		}
		item := object{path: at + ".", fault: o.fault}
		item.read(raw, known)
		each(item)
	}
}

var plainMember = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// member shows the name of a member as a part of a path.
func member(name string) string {
	if plainMember.MatchString(name) {
		return name
	}
	return shown(name)
}

// kindOf names a JSON value.
func kindOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return string(raw)
	case 'n':
		return "null"
	}
	if len(raw) > 20 {
		return "a number"
	}
	return "the number " + string(raw)
}

// namedTwice finds an object that has two members of one name, at any depth of a
// text that is known to be JSON, and says where.
func namedTwice(raw []byte) (path string, found bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number's value is none of our business, and can be slow
	return twiceIn(dec, "")
}

func twiceIn(dec *json.Decoder, path string) (string, bool) {
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return "", false
	}
	seen := map[string]bool{}
	for i := 0; dec.More(); i++ {
		at := fmt.Sprintf("%s[%d]", path, i)
		if open == json.Delim('{') {
			token, _ := dec.Token()
			name, _ := token.(string)
			if at = strings.TrimPrefix(path+"."+member(name), "."); seen[name] {
				return at, true
			}
			seen[name] = true
		}
		if where, twice := twiceIn(dec, at); twice {
			return where, true
		}
	}
	_, _ = dec.Token()
	return "", false
}
