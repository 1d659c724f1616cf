package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Form is a canonical form of JSON. In each of them the members of an object are sorted by
// their names, and nothing stands between the tokens.
type Form int

const (
	// RFC8785 sorts names by their UTF-16 code units and writes numbers and strings as
	// ECMAScript does (https://www.rfc-editor.org/rfc/rfc8785).
	RFC8785 Form = iota
	// AsSent sorts names by their code points and leaves numbers and strings as they are.
	AsSent
)

// Errors of [Canonical]. A text that more than one decoder could read in more than one way
// has no canonical form.
var (
	ErrDeep      = errors.New("is nested too deep")
	errUTF8      = errors.New("is not valid UTF-8")
	errNotJSON   = errors.New("is not JSON")
	errSurrogate = errors.New("has half of a surrogate pair")
)

// Canonical returns the canonical form of a text of JSON that is nested at most so deep,
// without some members of its outermost object.
func Canonical(text []byte, form Form, maxDepth int, without ...string) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errUTF8
	}
	c := canonicalizer{text: text, form: form, out: make([]byte, 0, len(text))}
	if err := c.value(maxDepth, without); err != nil {
		return nil, err
	}
	if c.peek(); c.at != len(text) {
		return nil, errNotJSON
	}
	return c.out, nil
}

// canonicalizer writes what it reads, and sorts the members of an object when all of them
// are written.
type canonicalizer struct {
	text []byte
	at   int // of the next byte
	form Form
	out  []byte
	// members belong to the open objects, sorted is scratch for sorting them.
	members []member
	sorted  []byte
}

// member is one of an object: its decoded name, and where it stands in the output, with
// the comma that follows it. A member that is left out has no bytes there.
type member struct {
	name       []byte
	start, end int
}

// peek skips white space and returns the byte after it, 0 at the end.
func (c *canonicalizer) peek() byte {
	for ; c.at < len(c.text); c.at++ {
		switch b := c.text[c.at]; b {
		case ' ', '\t', '\n', '\r':
		default:
			return b
		}
	}
	return 0
}

// skipByte skips white space and one byte of punctuation, and reports whether it was there.
func (c *canonicalizer) skipByte(want byte) bool {
	if c.peek() != want {
		return false
	}
	c.at++
	return true
}

func (c *canonicalizer) value(depth int, without []string) error {
	switch b := c.peek(); {
	case b == '"':
		return c.string()
	case (b == '{' || b == '[') && depth == 0:
		return ErrDeep
	case b == '{':
		return c.object(depth-1, without)
	case b == '[':
		return c.array(depth - 1)
	case b == '-' || isDigit(b):
		return c.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(c.text[c.at:], []byte(word)) {
			c.at += len(word)
			c.out = append(c.out, word...)
			return nil
		}
	}
	return errNotJSON
}

func (c *canonicalizer) array(depth int) error {
	c.at++
	c.out = append(c.out, '[')
	for first := true; !c.skipByte(']'); first = false {
		if !first {
			if !c.skipByte(',') {
				return errNotJSON
			}
			c.out = append(c.out, ',')
		}
		if err := c.value(depth, nil); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	return nil
}

func (c *canonicalizer) object(depth int, without []string) error {
	c.at++
	c.out = append(c.out, '{')
	first, inOrder := len(c.members), true
	for !c.skipByte('}') {
		if len(c.members) > first && !c.skipByte(',') {
			return errNotJSON
		}
		m, err := c.member(depth, without)
		if err != nil {
			return err
		}
		if n := len(c.members); n > first && c.compare(c.members[n-1], m) >= 0 {
			inOrder = false
		}
		if len(c.members) == cap(c.members) { // append would grow a long list by a quarter
			c.members = append(make([]member, 0, 2*len(c.members)+8), c.members...)
		}
		c.members = append(c.members, m)
	}
	if !inOrder {
		if err := c.sort(c.members[first:]); err != nil {
			return err
		}
	}
	c.members = c.members[:first]
	if last := len(c.out) - 1; c.out[last] == ',' {
		c.out = c.out[:last]
	}
	c.out = append(c.out, '}')
	return nil
}

func (c *canonicalizer) member(depth int, without []string) (m member, err error) {
	if c.peek() != '"' {
		return m, errNotJSON
	}
	m.start = len(c.out)
	if m.name, err = c.name(); err != nil {
		return m, err
	}
	if !c.skipByte(':') {
		return m, errNotJSON
	}
	c.out = append(c.out, ':')
	if err := c.value(depth, nil); err != nil {
		return m, err
	}
	c.out = append(c.out, ',')
	if slices.Contains(without, string(m.name)) {
		c.out = c.out[:m.start]
	}
	m.end = len(c.out)
	return m, nil
}

// sort puts the members of an object, which end the output, in order.
func (c *canonicalizer) sort(members []member) error {
	start := members[0].start
	slices.SortFunc(members, c.compare)
	if size := len(c.out) - start; size > cap(c.sorted) {
		c.sorted = make([]byte, 0, size)
	}
	c.sorted = c.sorted[:0]
	for i, m := range members {
		if i > 0 && bytes.Equal(members[i-1].name, m.name) {
			return fmt.Errorf("has the member %q twice", m.name)
		}
		c.sorted = append(c.sorted, c.out[m.start:m.end]...)
	}
	copy(c.out[start:], c.sorted)
	return nil
}

// compare orders names by their code points, as the bytes of UTF-8 do, or by UTF-16.
func (c *canonicalizer) compare(a, b member) int {
	if c.form == AsSent {
		return bytes.Compare(a.name, b.name)
	}
	return compareUTF16(a.name, b.name)
}

// compareUTF16 orders texts of UTF-8 by UTF-16, in which what is above U+FFFF comes before U+E000.
func compareUTF16(x, y []byte) int {
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	const first4, firstE000 = 0xf0, 0xee // first bytes of four, and from U+E000 on
	if len(x) > 0 && len(y) > 0 && (x[0] >= first4) != (y[0] >= first4) && min(x[0], y[0]) >= firstE000 {
		return cmp.Compare(y[0], x[0])
	}
	return bytes.Compare(x, y)
}
