package wire

import "fmt"

// cursor is a place in a JSON text. After an error it stays where it is.
type cursor struct {
	raw   []byte
	at    int
	first bool // the next item of the list is its first
	err   error
}

// fail reports what was expected here.
func (c *cursor) fail(want string) {
	if c.err == nil {
		c.err = fmt.Errorf("byte %d: want %s", c.at, want)
	}
}

// peek returns the next byte that is no space, 0 at the end.
func (c *cursor) peek() byte {
	for i := c.at; i < len(c.raw); i++ {
		if b := c.raw[i]; b > ' ' {
			c.at = i
			return b
		}
	}
	c.at = len(c.raw)
	return 0
}

// open begins a list.
func (c *cursor) open(bracket byte) {
	if c.peek() != bracket {
		c.fail(string(rune(bracket)))
		return
	}
	c.at++
	c.first = true
}

// more reports whether there is another item before the closing bracket, and
// stands at it then.
func (c *cursor) more(bracket byte) bool {
	next := c.peek()
	switch {
	case c.err != nil:
		return false
	case next == bracket:
		c.at++
		return false
	case c.first:
		c.first = false
	case next == ',':
		c.at++
	default:
		c.fail("a comma or " + string(rune(bracket)))
		return false
	}
	return true
}

// member reads a name, as it is written between its quotes, and a value.
func (c *cursor) member() (name, value []byte) {
	if c.peek() != '"' {
		c.fail("a name")
		return nil, nil
	}
	name = c.value()
	if c.peek() != ':' {
		c.fail("a colon")
		return nil, nil
	}
	c.at++
	return name[1 : len(name)-1], c.value()
}

// value passes over a value and returns it as it is written.
func (c *cursor) value() []byte {
	c.peek()
	end := skip(c.raw, c.at)
	if end < 0 {
		c.fail("a whole value")
		return nil
	}
	value := c.raw[c.at:end:end]
	c.at = end
	return value
}

// end is called behind the value.
func (c *cursor) end() error {
	if c.peek(); c.err == nil && c.at < len(c.raw) {
		c.fail("the end")
	}
	return c.err
}

// skip returns where the value that begins at i ends, -1 where it does not.
func skip(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch b := raw[i]; {
		case b == '"':
			if i = skipText(raw, i); i < 0 {
				return -1
			}
		case b == '{' || b == '[':
			depth++
			i++
		case depth == 0:
			return skipWord(raw, i)
		case b == '}' || b == ']':
			depth--
			i++
		default: // a comma, a colon, a space, a part of a number or word
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// skipText passes over a text.
func skipText(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// skipWord passes over a number, true, false or null.
func skipWord(raw []byte, i int) int {
	from := i
	for i < len(raw) && (raw[i]|0x20 >= 'a' && raw[i]|0x20 <= 'z' || raw[i] >= '+' && raw[i] <= '9' && raw[i] != ',') {
		i++
	}
	if i == from {
		return -1
	}
	return i
}
