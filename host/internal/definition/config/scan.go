package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a text may hold. The TOML parser recurses once per level and keeps the
// full path of every key, so without these a small text costs it gigabytes.
const (
	maxDepth = 32      // levels of tables and arrays
	maxPath  = 1024    // bytes of one key's full path
	maxNodes = 1 << 16 // keys and array elements
)

// scanner finds the position of every key and element of a TOML text. It reads
// structure only: whether strings, numbers and dates are well formed is for the
// parser to say, and a text that the scanner cannot follow is not a fault.
type scanner struct {
	text  string
	off   int
	nodes int
	limit string // why the scan stopped, if a limit was the reason
}

// place is a node under construction, with the cost of the path to it.
type place struct {
	*node
	depth, length int
}

// scan indexes a text. If limit is not empty, the text at offset off is beyond
// what is read at all.
func scan(text string) (root *node, off int, limit string) {
	s := &scanner{text: text}
	top := place{node: &node{}}
	for cur, ok := top, true; ok; {
		s.blank()
		switch {
		case s.off >= len(s.text):
			ok = false
		case s.text[s.off] == '[':
			cur, ok = s.header(top)
		default:
			ok = s.pair(cur)
		}
	}
	return top.node, s.off, s.limit
}

// header reads [a.b] or [[a.b]] and returns the table it opens.
func (s *scanner) header(top place) (place, bool) {
	start, array := s.off, strings.HasPrefix(s.text[s.off:], "[[")
	s.off++
	if array {
		s.off++
	}
	at, ok := s.keys(top, ']')
	if !ok {
		return at, false
	}
	if array {
		if !strings.HasPrefix(s.text[s.off:], "]") {
			return at, false
		}
		s.off++
		at.tables = true
		elem, ok := s.element(at, start)
		at.elems = append(at.elems, elem.node)
		return elem, ok
	}
	at.node = at.under()
	return at, true
}

// pair reads key = value.
func (s *scanner) pair(in place) bool {
	at, ok := s.keys(in, '=')
	if !ok {
		return false
	}
	s.space()
	return s.val(at)
}

// keys reads a dotted key up to its end character and returns the place that
// it names, creating it.
func (s *scanner) keys(at place, end byte) (place, bool) {
	for {
		s.space()
		start := s.off
		name, ok := s.key()
		if !ok {
			return at, false
		}
		s.space()
		if s.off >= len(s.text) {
			return at, false
		}
		last := s.text[s.off] == end
		if !last && s.text[s.off] != '.' {
			return at, false
		}
		if at, ok = s.enter(at, name, start, last); !ok {
			return at, false
		}
		s.off++
		if last {
			return at, true
		}
		at.node = at.under()
	}
}

// enter returns the named place under at. The last name of a key moves the
// place to itself: where a table is written out is a better position than the
// first mention of something below it.
func (s *scanner) enter(at place, name string, offset int, last bool) (place, bool) {
	sub := place{depth: at.depth + 1, length: at.length + len(name) + 1}
	if !s.within(sub) {
		return sub, false
	}
	sub.node = at.child(name)
	if sub.node == nil {
		s.nodes++
		sub.node = &node{key: offset, value: offset}
		if at.children == nil {
			at.children = map[string]*node{}
		}
		at.children[name] = sub.node
		at.names = append(at.names, name)
	} else if last && !sub.tables {
		sub.key, sub.value = offset, offset
	}
	if last && sub.first == 0 {
		sub.first = offset
	}
	return sub, true
}

func (s *scanner) element(in place, offset int) (place, bool) {
	s.nodes++
	sub := place{node: &node{key: offset, value: offset}, depth: in.depth + 1, length: in.length}
	return sub, s.within(sub)
}

func (s *scanner) within(p place) bool {
	switch {
	case p.depth > maxDepth:
		s.limit = fmt.Sprintf("more than %d levels of tables and arrays", maxDepth)
	case p.length > maxPath:
		s.limit = fmt.Sprintf("a key whose full path has more than %d bytes", maxPath)
	case s.nodes > maxNodes:
		s.limit = fmt.Sprintf("more than %d keys and elements", maxNodes)
	}
	return s.limit == ""
}

func (s *scanner) val(at place) bool {
	if s.off >= len(s.text) {
		return false
	}
	at.value = s.off
	switch s.text[s.off] {
	case '[':
		return s.array(at)
	case '{':
		return s.inline(at)
	case '"', '\'':
		return s.str()
	}
	s.bare()
	return true
}

func (s *scanner) array(at place) bool {
	s.off++
	for {
		s.blank()
		if s.accept(']') {
			return true
		}
		elem, ok := s.element(at, s.off)
		at.elems = append(at.elems, elem.node)
		if !ok || !s.val(elem) {
			return false
		}
		s.blank()
		if !s.accept(',') && !s.at(']') {
			return false
		}
	}
}

func (s *scanner) inline(at place) bool {
	s.off++
	for {
		s.blank()
		if s.accept('}') {
			return true
		}
		if !s.pair(at) {
			return false
		}
		s.blank()
		if !s.accept(',') && !s.at('}') {
			return false
		}
	}
}

func (s *scanner) at(c byte) bool { return s.off < len(s.text) && s.text[s.off] == c }

func (s *scanner) accept(c byte) bool {
	if !s.at(c) {
		return false
	}
	s.off++
	return true
}

// bare skips a number, date or word.
func (s *scanner) bare() { s.until(",]}#\n") }

// space skips white space within a line.
func (s *scanner) space() {
	for s.at(' ') || s.at('\t') {
		s.off++
	}
}

// blank skips white space, newlines and comments.
func (s *scanner) blank() {
	for s.off < len(s.text) {
		switch s.text[s.off] {
		case ' ', '\t', '\r', '\n':
			s.off++
		case '#':
			s.until("\n")
		default:
			return
		}
	}
}

func (s *scanner) until(stop string) {
	if i := strings.IndexAny(s.text[s.off:], stop); i >= 0 {
		s.off += i
		return
	}
	s.off = len(s.text)
}

// key reads one part of a dotted key.
func (s *scanner) key() (string, bool) {
	if s.at('"') || s.at('\'') {
		quote, start := s.text[s.off], s.off+1
		if !s.line(quote) {
			return "", false
		}
		name := s.text[start : s.off-1]
		if quote == '"' {
			name = unescape(name)
		}
		return name, true
	}
	start := s.off
	for s.off < len(s.text) && isBareKey(s.text[s.off]) {
		s.off++
	}
	return s.text[start:s.off], s.off > start
}

func isBareKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// str skips a string of any of the four kinds.
func (s *scanner) str() bool {
	quote := s.text[s.off]
	fence := strings.Repeat(string(quote), 3)
	if !strings.HasPrefix(s.text[s.off:], fence) {
		return s.line(quote)
	}
	for s.off += 3; s.off < len(s.text); s.off++ {
		switch {
		case s.text[s.off] == '\\' && quote == '"':
			s.off++
		case strings.HasPrefix(s.text[s.off:], fence):
			// Up to two quotes may stand directly before the closing three.
			s.off += 3
			for i := 0; i < 2 && s.at(quote); i++ {
				s.off++
			}
			return true
		}
	}
	s.off = len(s.text)
	return false
}

// line skips a string that ends on its line.
func (s *scanner) line(quote byte) bool {
	for s.off++; s.off < len(s.text); s.off++ {
		switch c := s.text[s.off]; {
		case c == '\n':
			return false
		case c == '\\' && quote == '"':
			s.off++
		case c == quote:
			s.off++
			return true
		}
	}
	s.off = len(s.text)
	return false
}

var escapes = map[byte]byte{'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', 'e': 0x1b, '"': '"', '\\': '\\'}

// unescape gives the text of a basic string. A bad escape stays as it is: the
// parser reports it.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c, ok := escapes[s[i]]; ok {
			b.WriteByte(c)
			continue
		}
		width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		r, ok := hexRune(s[i+1:], width)
		if !ok {
			b.WriteByte('\\')
			i--
			continue
		}
		b.WriteRune(r)
		i += width
	}
	return b.String()
}

func hexRune(s string, width int) (rune, bool) {
	if width == 0 || len(s) < width {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:width], 16, 31)
	return rune(n), err == nil && utf8.ValidRune(rune(n))
}
