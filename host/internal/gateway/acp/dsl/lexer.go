package dsl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tokenKind is what a token is. Punctuation is its own kind.
type tokenKind rune

const (
	tokenEnd    tokenKind = 0
	tokenName   tokenKind = 'a'
	tokenNumber tokenKind = '0'
	tokenString tokenKind = '"'
)

// token is one token with the comments before it.
type token struct {
	Pos
	kind     tokenKind
	text     string // as it is written
	comments []Comment
	behind   bool // the first comment stands behind the token before it
	gap      bool // an empty line comes before it
}

// describe names a token in a fault.
func (t token) describe() string {
	if t.kind == tokenEnd {
		return "the end of the file"
	}
	if t.kind == tokenString {
		return "a text"
	}
	return fmt.Sprintf("%q", clip(t.text))
}

// clip shortens a word for a message.
func clip(word string) string {
	if len(word) <= 60 {
		return word
	}
	return word[:60] + "…"
}

// lexer cuts a text into tokens.
type lexer struct {
	text   string
	offset int
	at     Pos
	begun  bool // something came before
	// foreign is set behind a comment in the form of another language, foreignCount is how many there were.
	foreign      bool
	foreignCount int
	// fail reports a fault, and whether to go on.
	fail func(at Pos, width int, format string, args ...any) bool
}

// advance goes over n bytes of one line.
func (l *lexer) advance(n int) string {
	part := l.text[l.offset : l.offset+n]
	l.offset += n
	l.at.Col += int32(utf8.RuneCountInString(part))
	return part
}

// ascii goes over n bytes that are a character each.
func (l *lexer) ascii(n int) string {
	part := l.text[l.offset : l.offset+n]
	l.offset += n
	l.at.Col += int32(n)
	return part
}

// next reads the next token into t. After the end that is the end again.
func (l *lexer) next(t *token) {
	*t = token{}
	lines := 0 // since what came before
	for l.offset < len(l.text) {
		switch c := l.text[l.offset]; {
		case c == '\n':
			lines++
			l.offset++
			l.at = Pos{Line: l.at.Line + 1, Col: 1}
		case c == ' ' || c == '\t' || c == '\r':
			l.ascii(1)
		case c == '/' && strings.HasPrefix(l.text[l.offset:], "//"):
			t.behind = t.behind || lines == 0 && l.begun
			text := l.comment()
			t.comments = append(roomFor(t.comments, 1), Comment{text, lines > 1})
			lines, l.begun = 0, true
		default:
			if t.Pos = l.pos(); l.token(t) {
				t.gap, l.begun, l.foreign = lines > 1, true, false
				return
			}
		}
	}
	t.Pos, t.kind = l.pos(), tokenEnd
}

// comment reads to the end of the line. Generated code has comments, so they must be UTF-8.
func (l *lexer) comment() string {
	text := l.text[l.offset : l.offset+l.lineEnd()]
	if !utf8.ValidString(text) {
		valid := strings.ToValidUTF8(text, "\xff")
		l.advance(strings.IndexByte(valid, 0xff))
		l.fail(l.pos(), 1, "this is not UTF-8")
		l.offset = len(l.text)
		return ""
	}
	return strings.TrimRight(l.advance(len(text)), " \t\r")
}

// pos is the place of what comes next.
func (l *lexer) pos() Pos {
	l.at.offset = int32(l.offset)
	return l.at
}

// roomFor makes room for n more. It doubles what there is: a file may have 300,000 comments
// in a row, and append would move them 30 times.
func roomFor[T any](all []T, n int) []T {
	if len(all)+n <= cap(all) {
		return all
	}
	return append(make([]T, 0, max(2*len(all), len(all)+n)), all...)
}

func (l *lexer) lineEnd() int {
	if n := strings.IndexByte(l.text[l.offset:], '\n'); n >= 0 {
		return n
	}
	return len(l.text) - l.offset
}

// token reads a token that is no comment. A character that cannot stand here is a
// fault and is skipped.
func (l *lexer) token(t *token) bool {
	rest := l.text[l.offset:]
	switch c := rest[0]; {
	case isAlpha(c):
		t.kind, t.text = tokenName, l.ascii(spanOf(rest, isNamePart))
	case isDigit(c) || c == '-' && len(rest) > 1 && isDigit(rest[1]):
		t.kind, t.text = tokenNumber, l.ascii(1+spanOf(rest[1:], isNumberPart))
	case c == '"':
		t.kind, t.text = tokenString, l.quoted()
	case strings.IndexByte("{}<>=:,?@()", c) >= 0:
		t.kind, t.text = tokenKind(c), l.ascii(1)
	case c == '#':
		l.foreignComment("#")
		l.advance(l.lineEnd())
	case strings.HasPrefix(rest, "/*"):
		l.foreignComment("/*")
		l.skipTo("*/")
	default:
		l.stray(rest)
	}
	return t.text != ""
}

// foreignComment reports a comment in the form of another language, and not those right
// behind it. After very many the text ends.
func (l *lexer) foreignComment(mark string) {
	if l.foreignCount++; l.foreignCount > maxSkipped || !l.foreign && !l.fail(l.pos(), len(mark), "a comment begins with // on each of its lines, not with %s", mark) {
		l.offset = len(l.text)
	}
	l.foreign = true
}

// skipTo goes behind a mark, or to the end of the text.
func (l *lexer) skipTo(mark string) {
	part, _, has := strings.Cut(l.text[l.offset:], mark)
	if lines := strings.Count(part, "\n"); lines > 0 {
		l.at = Pos{Line: l.at.Line + int32(lines), Col: 1}
	}
	l.at.Col += int32(utf8.RuneCountInString(part[strings.LastIndexByte(part, '\n')+1:]))
	if l.offset += len(part); has {
		l.advance(len(mark))
	}
}

// stray reports a run of characters that begin no token.
func (l *lexer) stray(rest string) {
	at, r := l.pos(), rune(0)
	r, n := utf8.DecodeRuneInString(rest)
	if r == utf8.RuneError && n <= 1 {
		l.fail(at, 1, "this is not UTF-8")
		l.offset = len(l.text)
		return
	}
	l.advance(n)
	for l.offset < len(l.text) { // one fault for all of them
		next, m := utf8.DecodeRuneInString(l.text[l.offset:])
		if next == utf8.RuneError || next < utf8.RuneSelf && next != r {
			break
		}
		l.advance(m)
	}
	text := fmt.Sprintf("%q cannot stand here; a name has the letters a to z and A to Z, digits and _", r)
	if r == '_' {
		text = "a name begins with a letter"
	}
	if !l.fail(at, int(l.at.Col-at.Col), "%s", text) {
		l.offset = len(l.text)
	}
}

// quoted reads a text in quotes, which ends in its line. It is empty after a fault that
// leaves no text.
func (l *lexer) quoted() string {
	at, rest, n := l.pos(), l.text[l.offset:], 1
	for ; n < len(rest) && rest[n] != '\n'; n++ {
		switch {
		case rest[n] == '\\' && n+1 < len(rest) && rest[n+1] != '\n':
			n++
		case rest[n] == '"':
			if _, err := unquote(rest[:n+1]); err != nil {
				l.fail(at, n+1, "%v", err)
			}
			return l.advance(n + 1)
		}
	}
	if l.advance(n); !l.fail(at, 1, `this text has no end: a " is missing in its line`) {
		l.offset = len(l.text)
	}
	return ""
}

// unquote returns what a text in quotes stands for.
func unquote(quoted string) (string, error) {
	var b strings.Builder
	inside := quoted[1 : len(quoted)-1]
	if !utf8.ValidString(inside) {
		return "", fmt.Errorf("this text is not UTF-8")
	}
	for i := 0; i < len(inside); i++ {
		if inside[i] == '\\' {
			if i++; i == len(inside) || inside[i] != '"' && inside[i] != '\\' {
				return "", fmt.Errorf(`a \ in a text stands before " or another \`)
			}
		}
		b.WriteByte(inside[i])
	}
	return b.String(), nil
}

func isAlpha(c byte) bool      { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool      { return c >= '0' && c <= '9' }
func isNamePart(c byte) bool   { return isAlpha(c) || isDigit(c) || c == '_' }
func isNumberPart(c byte) bool { return isDigit(c) || c == '.' }

func spanOf(text string, is func(byte) bool) int {
	n := 0
	for n < len(text) && is(text[n]) {
		n++
	}
	return n
}
