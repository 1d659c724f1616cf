package mail

import "strings"

// scanner reads one JSON value, once, from left to right. Its source is valid
// UTF-8; strings without escapes are returned as parts of the source.
type scanner struct {
	src   string
	pos   int
	depth int
	opts  ParseOptions // limits filled in
}

// peek skips whitespace and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end returns an error unless nothing but whitespace is left.
func (s *scanner) end() error {
	if s.peek(); s.pos < len(s.src) {
		return faultf("", "has trailing bytes after the JSON value, at byte %d", s.pos)
	}
	return nil
}

func (s *scanner) syntax(what string) error {
	return faultf("", "is not valid JSON: %s at byte %d", what, s.pos)
}

// wrong reports that the next value is not of the wanted type.
func (s *scanner) wrong(want string) error {
	var got string
	switch c := s.peek(); {
	case c == '{':
		got = "an object"
	case c == '[':
		got = "an array"
	case c == '"':
		got = "a string"
	case c == 't' || c == 'f':
		got = "a boolean"
	case c == 'n':
		got = "null"
	case c == '-' || isDigit(c):
		got = "a number"
	default:
		return s.syntax("no value")
	}
	return faultf("", "must be %s, not %s", want, got)
}

func (s *scanner) enter(open byte, want string) error {
	if s.peek() != open {
		return s.wrong(want)
	}
	if s.depth++; s.depth > s.opts.Limits.Depth {
		return limitf("", "is nested deeper than %d levels", s.opts.Limits.Depth)
	}
	s.pos++
	return nil
}

// next moves to the next element of an object or array. It returns false after
// taking the closing bracket.
func (s *scanner) next(first bool, closing byte) (bool, error) {
	c := s.peek()
	if c == closing {
		s.pos++
		s.depth--
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, s.syntax("no ',' or '" + string(closing) + "'")
	}
	s.pos++
	return true, nil
}

// key reads an object's key and the colon behind it.
func (s *scanner) key() (string, error) {
	if s.peek() != '"' {
		return "", s.syntax("no key")
	}
	k, err := s.text()
	if err != nil {
		return "", err
	}
	if s.peek() != ':' {
		return "", s.syntax("no ':'")
	}
	s.pos++
	return k, nil
}

// object reads an object of a known shape. member is called for each key with
// its index and reads the value.
func (s *scanner) object(sh *shape, member func(field int) error) error {
	if err := s.enter('{', "an object"); err != nil {
		return err
	}
	var (
		seen, nulls uint32 // bit i: keys[i] has occurred, was null and is ignored
		extra       keySet
	)
	for first := true; ; first = false {
		more, err := s.next(first, '}')
		if err != nil {
			return err
		}
		if !more {
			return sh.missing(seen)
		}
		k, err := s.key()
		if err != nil {
			return err
		}
		i := sh.find(k)
		switch {
		case i < 0:
			err = s.stranger(sh, k, &extra)
		case (seen|nulls)>>i&1 != 0:
			err = faultf("", "occurs twice")
		case i >= sh.required && s.absentNull():
			nulls |= 1 << i
		default:
			seen |= 1 << i
			err = member(i)
		}
		if err != nil {
			return under(PathKey(k), err)
		}
	}
}

// missing returns an error for the first required key that has not been seen.
func (s *shape) missing(seen uint32) error {
	for i := range s.required {
		if seen>>i&1 == 0 {
			return faultf(s.keys[i], "is missing")
		}
	}
	return nil
}

// stranger deals with a key that the shape does not have.
func (s *scanner) stranger(sh *shape, key string, seen *keySet) error {
	if !s.opts.UnknownKeys {
		return faultf("", "is not a known key")
	}
	if t := sh.twin(key); t != "" {
		return faultf("", "differs from the key %q in letter case only", t)
	}
	if !seen.add(key) {
		return faultf("", "occurs twice")
	}
	return s.skip()
}

// absentNull takes a null that the options let stand for an absent value.
func (s *scanner) absentNull() bool {
	if !s.opts.NullsAbsent || s.peek() != 'n' || !strings.HasPrefix(s.src[s.pos:], "null") {
		return false
	}
	s.pos += len("null")
	return true
}

// array reads an array; item is called for each element and reads it.
func (s *scanner) array(item func(i int) error) error {
	if err := s.enter('[', "an array"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.next(i == 0, ']')
		if err != nil || !more {
			return err
		}
		if err := item(i); err != nil {
			return under(index(i), err)
		}
	}
}
