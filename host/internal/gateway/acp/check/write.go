package check

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// writer writes a message as JSON, and keeps the first reason why it cannot.
type writer struct {
	b     []byte
	path  []step
	depth int
	err   error
}

// encode writes a value of a type. The place of a reason begins with the type's name.
func encode[T any](t T, name string, write func(*writer, T)) ([]byte, error) {
	w := &writer{path: []step{{name: name}}}
	write(w, t)
	if w.err == nil && len(w.b) > maxText {
		w.err = errSize
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.b, nil
}

func (w *writer) fail(reason string) {
	if w.err == nil {
		w.err = errors.New(place(w.path) + ": " + reason)
	}
}

// open begins an object or a list, and reports whether it may be that deep.
func (w *writer) open(c byte) bool {
	if w.depth++; w.depth > maxNesting && w.err == nil {
		w.err = errNesting
	}
	w.b = append(w.b, c)
	return w.err == nil
}

func (w *writer) close(c byte) {
	w.depth--
	w.b = append(w.b, c)
}

// comma goes before all but the first part.
func (w *writer) comma() {
	if c := w.b[len(w.b)-1]; c != '{' && c != '[' {
		w.b = append(w.b, ',')
	}
}

// part writes a part with its place.
func part[T any](w *writer, s step, t T, write func(*writer, T)) {
	if w.err != nil {
		return
	}
	w.path = append(w.path, s)
	write(w, t)
	w.path = w.path[:len(w.path)-1]
}

func writeField[T any](w *writer, name string, t T, write func(*writer, T)) {
	w.comma()
	w.b = append(appendString(w.b, name), ':')
	part(w, step{name: name}, t, write)
}

func writeOptional[T any](w *writer, name string, t *T, write func(*writer, T)) {
	if t != nil {
		writeField(w, name, *t, write)
	}
}

// writeOthers writes members that are not declared, ordered by name.
func writeOthers(w *writer, extra map[string]json.RawMessage, declared func(string) bool) {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		w.comma()
		part(w, step{name: name, key: true}, name, writeString)
		w.b = append(w.b, ':')
		v, err := parseText(extra[name])
		part(w, step{name: name, key: true}, v, func(w *writer, v value) {
			if declared(name) {
				w.fail("is declared and cannot be there twice")
			}
			if err != nil {
				w.fail(err.Error())
			}
			writeValue(w, v)
		})
	}
}

// writeValue writes any value.
func writeValue(w *writer, v value) {
	switch v.kind {
	case '"':
		w.b = appendString(w.b, v.text)
	case '[':
		if w.open('[') {
			for _, item := range v.items {
				w.comma()
				writeValue(w, item)
			}
		}
		w.close(']')
	case '{':
		if w.open('{') {
			for _, m := range v.members {
				w.comma()
				w.b = append(appendString(w.b, m.name), ':')
				writeValue(w, m.value)
			}
		}
		w.close('}')
	default:
		w.b = append(w.b, v.text...)
	}
}

func writeString(w *writer, s string) {
	if !utf8.ValidString(s) {
		w.fail("is not UTF-8")
	}
	w.b = appendString(w.b, s)
}

func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(slices.Grow(b, len(s)+2), '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func writeBoolean(w *writer, t bool) { w.b = strconv.AppendBool(w.b, t) }
func writeInt(w *writer, n int32)    { w.b = strconv.AppendInt(w.b, int64(n), 10) }
func writeLong(w *writer, n int64)   { w.b = strconv.AppendInt(w.b, n, 10) }

func writeFloat(w *writer, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.fail("is no number of 64 bits")
	}
	w.b = strconv.AppendFloat(w.b, f, 'g', -1, 64)
}

func writeBytes(w *writer, raw []byte) {
	w.b = append(base64.StdEncoding.AppendEncode(append(w.b, '"'), raw), '"')
}

// writeList writes each item of a list.
func writeList[T any](write func(*writer, T)) func(*writer, []T) {
	return func(w *writer, all []T) {
		if w.open('[') {
			for i, t := range all {
				w.comma()
				part(w, step{index: i}, t, write)
			}
		}
		w.close(']')
	}
}

// writeMap writes each member of a map, ordered by its key.
func writeMap[T any](write func(*writer, T)) func(*writer, map[string]T) {
	return func(w *writer, all map[string]T) {
		if w.open('{') {
			for _, name := range slices.Sorted(maps.Keys(all)) {
				w.comma()
				part(w, step{name: name, key: true}, name, writeString)
				w.b = append(w.b, ':')
				part(w, step{name: name, key: true}, all[name], write)
			}
		}
		w.close('}')
	}
}

// writeEnum writes one of some texts.
func writeEnum(w *writer, text string, known func(string) bool, list string) {
	if !known(text) {
		w.fail("is none of " + list)
	}
	w.b = appendString(w.b, text)
}
