package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
)

// Members are the members of an object by their names, as they stand in a text that
// [Canonical] takes. It returns false for what is no object. The values share the text's bytes.
func Members(text []byte) (all map[string]json.RawMessage, ok bool) {
	s := splitter{text}
	if !s.skipByte('{') {
		return nil, false
	}
	all = map[string]json.RawMessage{}
	for !s.skipByte('}') {
		s.skipByte(',')
		name, isText := Text(s.value())
		if !isText || !s.skipByte(':') {
			return nil, false
		}
		value := s.value()
		if len(value) == 0 {
			return nil, false
		}
		all[name] = value
	}
	return all, true
}

// EachMember yields the names and values of an object's members, as they stand in a text. It
// takes no memory, so that a text is weighed before a decoder makes values of it. It ends where
// the text is no object, and does not check it.
func EachMember(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		s := splitter{text}
		if !s.skipByte('{') {
			return
		}
		for !s.skipByte('}') {
			s.skipByte(',')
			name := s.value()
			if !s.skipByte(':') {
				return
			}
			value := s.value()
			if len(value) == 0 || !yield(name, value) {
				return
			}
		}
	}
}

// Items are the items of an array, as they stand in a text that [Canonical] takes. It returns
// false for what is no array. They share the text's bytes.
func Items(text []byte) (items []json.RawMessage, ok bool) {
	s := splitter{text}
	if !s.skipByte('[') {
		return nil, false
	}
	for !s.skipByte(']') {
		s.skipByte(',')
		item := s.value()
		if len(item) == 0 {
			return nil, false
		}
		items = append(items, item)
	}
	return items, true
}

// Text decodes a string of a text that [Canonical] takes. It returns false for what is no
// string.
func Text(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	plain, rest, hasEscape := bytes.Cut(raw, []byte{'\\'})
	if !hasEscape {
		return string(plain), true
	}
	decoded := make([]byte, 0, len(raw))
	for hasEscape {
		decoded = append(decoded, plain...)
		end, err := 0, error(nil)
		if decoded, end, err = appendUnescaped(decoded, rest, 0); err != nil {
			return "", false
		}
		plain, rest, hasEscape = bytes.Cut(rest[end:], []byte{'\\'})
	}
	return string(append(decoded, plain...)), true
}

// splitter cuts a JSON text into values. It does not check them.
type splitter struct{ rest []byte }

// skipByte skips white space and one byte of punctuation, and reports whether it was there.
func (s *splitter) skipByte(want byte) bool {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	if len(s.rest) == 0 || s.rest[0] != want {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// value takes the next value, nothing at the end of the text.
func (s *splitter) value() []byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	end, depth := 0, 0
	for end < len(s.rest) {
		switch s.rest[end] {
		case '"':
			end += stringLen(s.rest[end:])
		case '{', '[':
			depth++
			end++
		case '}', ']':
			depth--
			end++
		default:
			end++
		}
		if depth < 0 || depth == 0 && (end == len(s.rest) || strings.IndexByte(",:]} \t\r\n", s.rest[end]) >= 0) {
			break
		}
	}
	value := s.rest[:end:end]
	s.rest = s.rest[end:]
	return value
}

// stringLen is the length of the string that begins a text, with its quotes.
func stringLen(text []byte) int {
	for end := 1; ; {
		next := bytes.IndexByte(text[end:], '"')
		if next < 0 {
			return len(text)
		}
		end += next + 1
		before := bytes.TrimRight(text[1:end-1], `\`)
		if (end-2-len(before))%2 == 0 { // an even number of backslashes stands before it
			return end
		}
	}
}
