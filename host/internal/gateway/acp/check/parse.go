package check

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of the text of a message.
const (
	maxText    = 1 << 20 // bytes
	maxNesting = 64
)

// Reasons why a text is no message at all.
var (
	errSize      = errors.New("the text has more than 1048576 bytes")
	errUTF8      = errors.New("the text is not UTF-8")
	errJSON      = errors.New("the text is no JSON")
	errNesting   = errors.New("the text is nested deeper than 64")
	errTwice     = errors.New("the text has a member twice")
	errSurrogate = errors.New("the text has an unpaired surrogate")
)

// value is one value of JSON. Its kind is the character it begins with, 0 for numbers.
type value struct {
	kind    byte
	text    string // of a string what it stands for, else as it is written
	items   []value
	members []member
}

type member struct {
	name  string
	value value
}

// parseText reads a text that is one value of JSON.
func parseText(text []byte) (value, error) {
	switch {
	case len(text) > maxText:
		return value{}, errSize
	case !utf8.Valid(text):
		return value{}, errUTF8
	}
	p := &parser{text: string(text)}
	p.space()
	v := p.value()
	p.space()
	if p.at < len(p.text) {
		p.fail(errJSON)
	}
	return v, p.err
}

// parser reads JSON from left to right and stops at the first error.
type parser struct {
	text  string
	at    int
	depth int
	err   error
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.at = len(p.text)
}

// peek is the next character, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.peek() == c && c != 0 {
		p.at++
		return true
	}
	return false
}

func (p *parser) space() {
	for c := p.peek(); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = p.peek() {
		p.at++
	}
}

func (p *parser) value() value {
	switch c := p.peek(); c {
	case '{', '[':
		if p.depth++; p.depth > maxNesting {
			p.fail(errNesting)
			return value{}
		}
		defer func() { p.depth-- }()
		if c == '{' {
			return p.object()
		}
		return p.list()
	case '"':
		return value{kind: '"', text: p.string()}
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	}
	return p.number()
}

func (p *parser) word(word string) value {
	if len(p.text)-p.at < len(word) || p.text[p.at:p.at+len(word)] != word {
		p.fail(errJSON)
		return value{}
	}
	p.at += len(word)
	return value{kind: word[0], text: word}
}

func (p *parser) number() value {
	begin := p.at
	p.take('-')
	if !p.take('0') && p.digits() == 0 {
		p.fail(errJSON)
	}
	if p.take('.') && p.digits() == 0 {
		p.fail(errJSON)
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if p.digits() == 0 {
			p.fail(errJSON)
		}
	}
	return value{text: p.text[begin:p.at]}
}

func (p *parser) digits() (n int) {
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
		n++
	}
	return n
}

func (p *parser) list() value {
	v := value{kind: '['}
	p.take('[')
	if p.space(); p.take(']') {
		return v
	}
	for p.err == nil {
		p.space()
		v.items = append(v.items, p.value())
		if p.space(); p.take(']') {
			return v
		}
		if !p.take(',') {
			p.fail(errJSON)
		}
	}
	return v
}

func (p *parser) object() value {
	v := value{kind: '{'}
	p.take('{')
	if p.space(); p.take('}') {
		return v
	}
	names := map[string]bool{}
	for p.err == nil {
		p.space()
		if p.peek() != '"' {
			p.fail(errJSON)
			return v
		}
		name := p.string()
		if names[name] {
			p.fail(errTwice)
		}
		names[name] = true
		if p.space(); !p.take(':') {
			p.fail(errJSON)
		}
		p.space()
		v.members = append(v.members, member{name, p.value()})
		if p.space(); p.take('}') {
			return v
		}
		if !p.take(',') {
			p.fail(errJSON)
		}
	}
	return v
}

func (p *parser) string() string {
	p.take('"')
	begin := p.at
	for c := p.peek(); c >= ' ' && c != '"' && c != '\\'; c = p.peek() {
		p.at++
	}
	if plain := p.text[begin:p.at]; p.take('"') {
		return plain
	}
	b := []byte(p.text[begin:p.at])
	for p.err == nil {
		c := p.peek()
		switch {
		case p.take('"'):
			return string(b)
		case p.take('\\'):
			b = p.escape(b)
		case c < ' ':
			p.fail(errJSON)
		default:
			p.at++
			b = append(b, c)
		}
	}
	return ""
}

func (p *parser) escape(b []byte) []byte {
	c := p.peek()
	p.at++
	switch c {
	case '"', '\\', '/':
		return append(b, c)
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		return p.codeUnit(b)
	}
	p.fail(errJSON)
	return b
}

// codeUnit reads the four digits after \u, and the other half of a surrogate.
func (p *parser) codeUnit(b []byte) []byte {
	r := p.hex()
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(b, r)
	}
	if p.err == nil && (r >= 0xdc00 || !p.take('\\') || !p.take('u')) {
		p.fail(errSurrogate)
		return b
	}
	low := p.hex()
	if low < 0xdc00 || low > 0xdfff {
		p.fail(errSurrogate)
	}
	return utf8.AppendRune(b, utf16.DecodeRune(r, low))
}

func (p *parser) hex() rune {
	if p.at+4 > len(p.text) {
		p.fail(errJSON)
		return 0
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+4], 16, 16)
	if err != nil {
		p.fail(errJSON)
		return 0
	}
	p.at += 4
	return rune(n)
}
