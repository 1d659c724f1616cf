package mail

import (
	"encoding/json"
	"strings"
)

// skip reads any value and checks its syntax.
func (s *scanner) skip() error {
	switch c := s.peek(); {
	case c == '{':
		return s.skipObject()
	case c == '[':
		return s.array(func(int) error { return s.skip() })
	case c == '"':
		return s.skipText()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || isDigit(c):
		return s.skipNumber()
	}
	return s.syntax("no value")
}

func (s *scanner) skipObject() error {
	if err := s.enter('{', "an object"); err != nil {
		return err
	}
	var seen keySet
	for first := true; ; first = false {
		more, err := s.next(first, '}')
		if err != nil || !more {
			return err
		}
		k, err := s.key()
		if err != nil {
			return err
		}
		if !seen.add(k) {
			return faultf(PathKey(k), "occurs twice")
		}
		if err := s.skip(); err != nil {
			return under(PathKey(k), err)
		}
	}
}

func (s *scanner) literal(word string) error {
	if !strings.HasPrefix(s.src[s.pos:], word) {
		return s.syntax("no value")
	}
	s.pos += len(word)
	return nil
}

// skipNumber reads -? (0|[1-9][0-9]*) (.[0-9]+)? ([eE][+-]?[0-9]+)?
func (s *scanner) skipNumber() error {
	s.take("-")
	ok := s.take("0") || s.digits()
	if ok && s.take(".") {
		ok = s.digits()
	}
	if ok && s.take("eE") {
		s.take("+-")
		ok = s.digits()
	}
	if !ok {
		return s.syntax("broken number")
	}
	return nil
}

// take skips the next byte if it is one of set.
func (s *scanner) take(set string) bool {
	if s.pos < len(s.src) && strings.IndexByte(set, s.src[s.pos]) >= 0 {
		s.pos++
		return true
	}
	return false
}

// digits skips decimal digits and reports whether there were any.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.src) && isDigit(s.src[s.pos]) {
		s.pos++
	}
	return s.pos > start
}

// rawObject reads an object with any members and returns it compact.
func (s *scanner) rawObject() (json.RawMessage, error) {
	if s.peek() != '{' {
		return nil, s.wrong("an object")
	}
	start := s.pos
	if err := s.skip(); err != nil {
		return nil, err
	}
	raw := s.src[start:s.pos]
	return appendCompact(make(json.RawMessage, 0, len(raw)), raw), nil
}

// appendCompact appends valid JSON without its insignificant whitespace.
func appendCompact[T string | json.RawMessage](dst []byte, src T) []byte {
	inText := false
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case inText && c == '\\':
			dst = append(dst, c)
			i++
			c = src[i]
		case c == '"':
			inText = !inText
		case !inText && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
