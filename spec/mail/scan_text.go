package mail

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string.
func (s *scanner) text() (string, error) {
	if s.peek() != '"' {
		return "", s.wrong("a string")
	}
	start := s.pos + 1
	for i := start; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			s.pos = i + 1
			return s.src[start:i], nil
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			s.pos = i
			return "", s.syntax("control character in a string")
		}
	}
	s.pos = len(s.src)
	return "", s.syntax("string without an end")
}

// escaped reads the rest of a string from its first escape on.
func (s *scanner) escaped(start, first int) (string, error) {
	var b strings.Builder
	b.Grow(s.textLen(start))
	b.WriteString(s.src[start:first])
	for s.pos = first; s.pos < len(s.src); {
		switch c := s.src[s.pos]; {
		case c == '"':
			s.pos++
			return b.String(), nil
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		case c < ' ':
			return "", s.syntax("control character in a string")
		default:
			run := s.pos
			for s.pos < len(s.src) && plainByte(s.src[s.pos]) {
				s.pos++
			}
			b.WriteString(s.src[run:s.pos])
		}
	}
	return "", s.syntax("string without an end")
}

// plainByte reports whether c stands for itself in a string.
func plainByte(c byte) bool { return c >= ' ' && c != '"' && c != '\\' }

// textLen returns the length in the source of the string that begins at start; no
// string is longer decoded than encoded.
func (s *scanner) textLen(start int) int {
	i := start
	for i < len(s.src) && s.src[i] != '"' {
		if s.src[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(s.src)) - start
}

// skipText reads a string and checks its syntax.
func (s *scanner) skipText() error {
	for s.pos++; s.pos < len(s.src); {
		switch c := s.src[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if _, err := s.escape(); err != nil {
				return err
			}
		case c < ' ':
			return s.syntax("control character in a string")
		default:
			s.pos++
		}
	}
	return s.syntax("string without an end")
}

// escape reads one escape sequence and returns what it stands for.
func (s *scanner) escape() (rune, error) {
	if s.pos+1 >= len(s.src) {
		return 0, s.syntax("string without an end")
	}
	c := s.src[s.pos+1]
	switch c {
	case 'u':
		return s.unicode()
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	default:
		return 0, s.syntax("unknown escape")
	}
	s.pos += 2
	return rune(c), nil
}

// unicode reads \uXXXX, or two of them that form a surrogate pair. Half a pair is
// refused: it stands for no character, and readers differ in what they make of it.
func (s *scanner) unicode() (rune, error) {
	r, ok := hex4(s.src[s.pos:])
	if !ok {
		return 0, s.syntax(`broken \u escape`)
	}
	if !utf16.IsSurrogate(r) {
		s.pos += 6
		return r, nil
	}
	low, ok := hex4(s.src[s.pos+6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, s.syntax("half a surrogate pair")
	}
	s.pos += 12
	return r, nil
}

// hex4 decodes the \uXXXX at the start of t.
func hex4(t string) (r rune, ok bool) {
	if len(t) < 6 || t[0] != '\\' || t[1] != 'u' {
		return 0, false
	}
	for i := 2; i < 6; i++ {
		if !isHex(t[i]) {
			return 0, false
		}
		r = r<<4 | rune(unhex(t[i]))
	}
	return r, true
}
