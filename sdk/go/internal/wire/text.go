package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

var errNoText = errors.New("want a text")

// text reads a text. Most have no escapes, or only one-letter ones.
func text(raw []byte) (string, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", errNoText
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	if s, ok := unescape(raw[1 : len(raw)-1]); ok {
		return s, nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// unescape resolves escapes of one letter, and no others.
func unescape(in []byte) (string, bool) {
	out := make([]byte, 0, len(in))
	for {
		n := bytes.IndexByte(in, '\\')
		if n < 0 {
			return string(append(out, in...)), true
		}
		b, ok := escaped(in[n+1])
		if !ok {
			return "", false
		}
		out = append(append(out, in[:n]...), b)
		in = in[n+2:]
	}
}

func escaped(letter byte) (byte, bool) {
	switch letter {
	case '"', '\\', '/':
		return letter, true
	case 'n':
		return '\n', true
	case 't':
		return '\t', true
	case 'r':
		return '\r', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	}
	return 0, false
}

// AppendText writes a text. What is no UTF-8 becomes U+FFFD.
func AppendText(to []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	to = append(to, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		to = append(to, s[from:i]...)
		from = i + 1
		switch b {
		case '"', '\\':
			to = append(to, '\\', b)
		case '\n':
			to = append(to, '\\', 'n')
		case '\t':
			to = append(to, '\\', 't')
		case '\r':
			to = append(to, '\\', 'r')
		default:
			const digits = "0123456789abcdef"
			to = append(to, '\\', 'u', '0', '0', digits[b>>4], digits[b&15])
		}
	}
	return append(append(to, s[from:]...), '"')
}

// Texts writes an object of texts, given as names and values in turn.
func Texts(pairs ...string) []byte {
	out := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(AppendText(out, pairs[i]), ':')
		out = AppendText(out, pairs[i+1])
	}
	return append(out, '}')
}
