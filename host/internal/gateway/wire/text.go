package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// name reads a string, writes it and returns it decoded.
func (c *canonicalizer) name() (decoded []byte, err error) {
	start := c.at
	if err := c.string(); err != nil {
		return nil, err
	}
	raw := c.text[start:c.at]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	text, _ := Text(raw) // a string that was read has one
	return []byte(text), nil
}

// string reads a string and writes it. What its form leaves as it is is copied in one piece.
func (c *canonicalizer) string() error {
	start := c.at // of what is not copied yet
	var char [utf8.UTFMax]byte
	for i := start + 1; ; {
		i += plainLen(c.text[i:])
		switch {
		case i == len(c.text) || c.text[i] < ' ':
			return errNotJSON
		case c.text[i] == '"':
			c.at = i + 1
			c.out = append(c.out, c.text[start:c.at]...)
			return nil
		case i+1 < len(c.text) && strings.IndexByte(shortest, c.text[i+1]) >= 0:
			i += 2
			continue
		}
		decoded, end, err := appendUnescaped(char[:0], c.text, i+1)
		if err != nil {
			return err
		}
		if c.form != AsSent {
			c.out = append(c.out, c.text[start:i]...)
			c.out = appendEscaped(c.out, decoded)
			start = end
		}
		i = end
	}
}

// plainLen is how many bytes of a string come before its end, its next escape or a control
// character. It looks at 32 bytes at once as long as it can.
func plainLen(text []byte) (n int) {
	for ; n+32 <= len(text); n += 32 {
		at := text[n : n+32]
		if specials(at)|specials(at[8:])|specials(at[16:])|specials(at[24:]) != 0 {
			break
		}
	}
	for ; n+8 <= len(text); n += 8 {
		if found := specials(text[n:]); found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] != '"' && text[n] != '\\' && text[n] >= ' ' {
		n++
	}
	return n
}

// specials looks for quotes, backslashes and control characters in eight bytes. The lowest bit of
// its result is the highest of the first one, by the test of
// https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord. A quote with its second bit
// turned is the byte behind the control characters, which stay among themselves.
func specials(text []byte) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	w := binary.LittleEndian.Uint64(text)
	control, backslash := w^each*('"'^' '), w^each*'\\'
	return ((control-each*(' '+1))&^control | (backslash-each)&^backslash) & high
}

// appendUnescaped decodes the escape whose backslash is before text[i], and returns where
// it ends.
func appendUnescaped(decoded, text []byte, i int) ([]byte, int, error) {
	if i >= len(text) {
		return nil, i, errNotJSON
	}
	if text[i] != 'u' {
		at := strings.IndexByte(escapes, text[i])
		if at < 0 {
			return nil, i, errNotJSON
		}
		return append(decoded, escaped[at]), i + 1, nil
	}
	r, ok := unit(text, i+1)
	if !ok {
		return nil, i, errNotJSON
	}
	i += 5
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(decoded, r), i, nil
	}
	low, ok := rune(0), i+1 < len(text) && text[i] == '\\' && text[i+1] == 'u'
	if ok {
		low, ok = unit(text, i+2)
	}
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return nil, i, errSurrogate
	}
	return utf8.AppendRune(decoded, r), i + 6, nil
}

// escapes are the letters after a backslash, escaped what they stand for; shortest are those that
// RFC 8785 writes.
const (
	escapes  = `"\/bfnrt`
	escaped  = "\"\\/\b\f\n\r\t"
	shortest = `"\bfnrt`
)

// unit reads four hexadecimal digits.
func unit(text []byte, i int) (r rune, ok bool) {
	if i+4 > len(text) {
		return 0, false
	}
	for _, b := range text[i : i+4] {
		digit := strings.IndexByte(hexDigits, b|0x20)
		if digit < 0 || b < '0' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}

const hexDigits = "0123456789abcdef"

// AppendText writes a text as RFC 8785 does. It writes U+FFFD for each byte that is not of UTF-8, as
// package json does.
func AppendText(out []byte, text string) []byte {
	out = append(out, '"')
	if utf8.ValidString(text) {
		out = appendEscaped(out, text)
	} else {
		out = appendEscaped(out, string([]rune(text)))
	}
	return append(out, '"')
}

// escapedAtOnce is how much of a text is copied before it is looked at, in bytes: what follows an
// escape is copied again.
const escapedAtOnce = 256

// appendEscaped writes what stands between the quotes of a string, with the fewest escapes.
func appendEscaped[Text string | []byte](out []byte, text Text) []byte {
	for len(text) > 0 {
		begin := len(out)
		out = append(out, text[:min(len(text), escapedAtOnce)]...)
		n := plainLen(out[begin:])
		out, text = out[:begin+n], text[n:]
		if n < escapedAtOnce && len(text) > 0 {
			out = appendEscape(out, text[0])
			text = text[1:]
		}
	}
	return out
}

func appendEscape(out []byte, b byte) []byte {
	if at := strings.IndexByte(escaped, b); at >= 0 {
		return append(out, '\\', escapes[at])
	}
	return append(out, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
}

// AppendObject writes members, whose values are JSON, as an object of RFC 8785 that is nested at
// most so deep. A value that is nil is null.
func AppendObject(out []byte, members map[string]json.RawMessage, maxDepth int) ([]byte, error) {
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int { return compareUTF16([]byte(a), []byte(b)) })
	out = append(out, '{')
	for i, name := range names {
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("has the member %q, which %w", name, errUTF8)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(AppendText(out, name), ':')
		value := members[name]
		if value == nil {
			value = json.RawMessage("null")
		}
		value, err := Canonical(value, RFC8785, maxDepth-1)
		if err != nil {
			return nil, err
		}
		out = append(out, value...)
	}
	return append(out, '}'), nil
}
