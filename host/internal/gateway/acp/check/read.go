package check

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// reader reads a message from the value of its text, and keeps the first reason why it
// cannot.
type reader struct {
	path []step
	err  error
}

// step is one step on the way to a value: a field, a key of a map, or a place in a list.
type step struct {
	name  string
	key   bool
	index int // used when name is empty and key is not set
}

// decode reads a text as a type. The place of a reason begins with the type's name.
func decode[T any](text []byte, name string, read func(*reader, *value) T) (t T, err error) {
	v, err := parseText(text)
	if err != nil {
		return t, err
	}
	r := &reader{path: []step{{name: name}}}
	t = read(r, &v)
	return t, r.err
}

func (r *reader) fail(reason string) {
	if r.err == nil {
		r.err = errors.New(place(r.path) + ": " + reason)
	}
}

func place(path []step) string {
	var b strings.Builder
	for i, s := range path {
		switch {
		case s.key:
			b.WriteString("[" + string(appendString(nil, s.name)) + "]")
		case s.name == "":
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// at reads a part.
func at[T any](r *reader, s step, v *value, read func(*reader, *value) T) (t T) {
	if r.err != nil {
		return t
	}
	r.path = append(r.path, s)
	t = read(r, v)
	r.path = r.path[:len(r.path)-1]
	return t
}

func find(v *value, name string) *value {
	for i := range v.members {
		if v.members[i].name == name {
			return &v.members[i].value
		}
	}
	return nil
}

// readObject reports whether a value is an object.
func readObject(r *reader, v *value) bool {
	if v.kind != '{' {
		r.fail("is no object")
	}
	return v.kind == '{'
}

// field reads a member that must be there.
func field[T any](r *reader, v *value, name string, read func(*reader, *value) T) T {
	part := find(v, name)
	if part == nil {
		return at(r, step{name: name}, v, func(r *reader, _ *value) (t T) {
			r.fail("is missing")
			return t
		})
	}
	return at(r, step{name: name}, part, read)
}

// optional reads a member that may be absent or null.
func optional[T any](r *reader, v *value, name string, read func(*reader, *value) T) *T {
	part := find(v, name)
	if part == nil || part.kind == 'n' {
		return nil
	}
	t := at(r, step{name: name}, part, read)
	return &t
}

// optionalParts reads a list, a map or bytes that may be absent or null: nil then.
func optionalParts[T any](r *reader, v *value, name string, read func(*reader, *value) T) (t T) {
	if p := optional(r, v, name, read); p != nil {
		return *p
	}
	return t
}

// others are the members that are not declared, each with its text.
func others(v *value, declared func(string) bool) map[string]json.RawMessage {
	var extra map[string]json.RawMessage
	for i := range v.members {
		if m := &v.members[i]; !declared(m.name) {
			if extra == nil {
				extra = map[string]json.RawMessage{}
			}
			w := &writer{}
			writeValue(w, m.value)
			extra[m.name] = w.b
		}
	}
	return extra
}

// noOthers refuses members that are not declared.
func noOthers(r *reader, v *value, declared func(string) bool) {
	for i := range v.members {
		if name := v.members[i].name; !declared(name) {
			at(r, step{name: name, key: true}, v, func(r *reader, _ *value) bool {
				r.fail("is not declared")
				return false
			})
		}
	}
}

func readString(r *reader, v *value) string {
	if v.kind != '"' {
		r.fail("is no string")
	}
	return v.text
}

func readBoolean(r *reader, v *value) bool {
	if v.kind != 't' && v.kind != 'f' {
		r.fail("is neither true nor false")
	}
	return v.kind == 't'
}

func readInt(r *reader, v *value) int32 {
	return int32(readWhole(r, v, 32))
}

func readLong(r *reader, v *value) int64 {
	return readWhole(r, v, 64)
}

// readWhole takes whole numbers that are written without fraction and exponent.
func readWhole(r *reader, v *value, bits int) int64 {
	n, err := strconv.ParseInt(v.text, 10, bits)
	if v.kind != 0 || err != nil {
		r.fail("is no whole number of " + strconv.Itoa(bits) + " bits")
	}
	return n
}

func readFloat(r *reader, v *value) float64 {
	f, err := strconv.ParseFloat(v.text, 64)
	if v.kind != 0 || err != nil && math.IsInf(f, 0) {
		r.fail("is no number of 64 bits")
	}
	return f
}

func readBytes(r *reader, v *value) []byte {
	raw, err := base64.StdEncoding.DecodeString(v.text)
	if v.kind != '"' || err != nil || base64.StdEncoding.EncodeToString(raw) != v.text {
		r.fail("is no base64")
	}
	return raw
}

// readList reads each item of a list.
func readList[T any](read func(*reader, *value) T) func(*reader, *value) []T {
	return func(r *reader, v *value) []T {
		if v.kind != '[' {
			r.fail("is no list")
		}
		all := make([]T, 0, len(v.items))
		for i := range v.items {
			all = append(all, at(r, step{index: i}, &v.items[i], read))
		}
		return all
	}
}

// readMap reads each member of an object.
func readMap[T any](read func(*reader, *value) T) func(*reader, *value) map[string]T {
	return func(r *reader, v *value) map[string]T {
		readObject(r, v)
		all := make(map[string]T, len(v.members))
		for i := range v.members {
			m := &v.members[i]
			all[m.name] = at(r, step{name: m.name, key: true}, &m.value, read)
		}
		return all
	}
}

// readEnum takes one of some texts.
func readEnum(r *reader, v *value, known func(string) bool, list string) string {
	if v.kind != '"' || !known(v.text) {
		r.fail("is none of " + list)
	}
	return v.text
}
