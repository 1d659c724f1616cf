package dsl

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a file and all that it imports.
const (
	MaxBytes = 1 << 20
	MaxDepth = 64
	// MaxItems counts declarations, fields, values, annotations and arguments.
	MaxItems = 10_000
	// MaxName is the length of a name. Compilers of some languages make a file of 255
	// characters at most for a type, with the names of what it is in.
	MaxName = 100
)

// budget is what may still be read.
type budget struct{ bytes, items int }

func newBudget() *budget { return &budget{MaxBytes, MaxItems} }

// Parse reads one file and does not follow its imports. The tree has what could be read.
func Parse(name, text string) (*File, error) {
	f, faults := parse(name, text, newBudget())
	if len(faults) > 0 {
		return f, faults
	}
	return f, nil
}

func parse(name, text string, left *budget) (*File, Faults) {
	p := &parser{source: &source{file: name}, left: left}
	if len(text) > left.bytes {
		p.fail(Pos{Line: 1, Col: 1}, 1, "the declarations have more than %d bytes, imports counted", MaxBytes)
		return &File{Name: name}, p.faults
	}
	left.bytes -= len(text)
	p.source = newSource(name, text)
	p.lexer = lexer{text: p.source.text, at: Pos{Line: 1, Col: 1}, fail: p.fail}
	p.advance()
	f := p.file(name)
	if is, offset := otherForm(p.source.text); is != "" && len(f.Items) == 0 && !p.declares && len(p.faults) > 0 {
		line := int32(1 + strings.Count(p.source.text[:offset], "\n"))
		return f, Faults{p.source.fault(Pos{Line: line, Col: 1, offset: int32(offset)}, 1, is)}
	}
	if faults := p.faults.Sorted(); len(f.Items) > 0 || p.declares || len(faults) < fewFaults {
		return f, faults
	}
	p.faults[0].Message += "; nothing in the file can be read as a declaration: is it a .acp file?"
	return f, p.faults[:1]
}

// fewFaults is how many faults a file without any declaration has at least to be taken for
// one in another language.
const fewFaults = 3

// parser descends through the grammar. After a fault it goes on where the next field
// or item begins.
type parser struct {
	source *source
	lexer  lexer
	tok    token
	// stray are comments inside of what has no place for them; they come to stand
	// before it.
	stray   []Comment
	depth   int
	left    *budget
	skipped int
	// declares is set where a type or enum was begun.
	declares bool
	stopped  bool // by a bound
	faults   Faults

	items  slab[Item]
	types  slab[TypeExpr]
	fields slab[FieldExpr]
}

// slab allocates nodes of the tree many at a time.
type slab[T any] []T

const slabSize = 60

func (s *slab[T]) add(node T) *T {
	if len(*s) == cap(*s) {
		*s = slices.Grow([]T(nil), slabSize) // all of what the allocator gives
	}
	*s = append(*s, node)
	return &(*s)[len(*s)-1]
}

// failed unwinds to where parsing goes on.
type failed struct{}

func (p *parser) fail(at Pos, width int, format string, args ...any) bool {
	if p.stopped || len(p.faults) >= maxFaults {
		return false
	}
	p.faults = append(p.faults, p.source.fault(at, width, fmt.Sprintf(format, args...)))
	return true
}

// stop ends the run at a bound.
func (p *parser) stop(format string, args ...any) {
	p.fail(p.tok.Pos, utf8.RuneCountInString(p.tok.text), format, args...)
	p.stopped, p.tok = true, token{Pos: p.tok.Pos}
	panic(failed{})
}

// expected reports that something else should stand here, and unwinds.
func (p *parser) expected(what string, suggestion string) {
	if p.fail(p.tok.Pos, utf8.RuneCountInString(p.tok.text), "%s is expected, not %s", what, p.tok.describe()) {
		p.faults[len(p.faults)-1].Suggestion = suggestion
	}
	panic(failed{})
}

// count takes one of the items that a file may have.
func (p *parser) count() {
	if p.left.items--; p.left.items < 0 {
		p.stop("the declarations have more than %d items, fields and values, imports counted", MaxItems)
	}
}

// enterType goes one level down. The caller comes up again by itself, and after a fault
// [parser.recovering] does.
func (p *parser) enterType() {
	if p.depth++; p.depth > MaxDepth {
		p.stop("types are nested deeper than %d here", MaxDepth)
	}
}

// advance goes to the next token and returns the text of the one before.
func (p *parser) advance() Word {
	word := Word{p.tok.text, p.tok.Pos}
	if len(p.stray) == 0 {
		p.stray = p.tok.comments
	} else {
		p.stray = append(roomFor(p.stray, len(p.tok.comments)), p.tok.comments...)
	}
	if p.stopped || len(p.faults) >= maxFaults {
		p.tok = token{Pos: word.Pos}
	} else {
		p.lexer.next(&p.tok)
	}
	return word
}

// maxSkipped is how many tokens are passed over after faults before a run ends.
const maxSkipped = 20_000

// skipToken passes over a token that follows a fault.
func (p *parser) skipToken() {
	if p.skipped++; p.skipped > maxSkipped {
		p.stopped = true
	}
	p.tok.comments = nil
	p.advance()
}

// leadingComments are the comments before the token, for what begins with it.
func (p *parser) leadingComments() *Comments {
	if lead := p.takeComments(); p.tok.gap || len(lead) > 0 {
		return &Comments{Gap: p.tok.gap, Lead: lead}
	}
	return nil
}

// takeComments returns the comments before the token, and leaves none.
func (p *parser) takeComments() (lead []Comment) {
	lead, p.tok.comments = p.tok.comments, nil
	return lead
}

// attachComments adds the comment that stands behind, and those that were found inside.
func (p *parser) attachComments(to **Comments, mark int) {
	if len(p.tok.comments) == 0 && len(p.stray) <= mark {
		return
	}
	if *to == nil {
		*to = &Comments{}
	}
	c := *to
	if rest := p.tok.comments; c.Trail == "" && len(rest) > 0 && p.tok.behind {
		c.Trail = rest[0].Text
		p.tok.comments, p.tok.behind = rest[1:], false
	}
	if len(p.stray) > mark {
		found := p.stray[mark:]
		for i := range found {
			found[i].Gap = false
		}
		if mark == 0 && len(c.Lead) == 0 {
			c.Lead, p.stray = found, nil // these may be very many
			return
		}
		c.Lead = append(c.Lead, found...)
		p.stray = p.stray[:mark]
	}
}

func (p *parser) is(kind tokenKind) bool { return p.tok.kind == kind }

// accept goes over a token of a kind, and reports whether there is one.
func (p *parser) accept(kind tokenKind) bool {
	if p.is(kind) {
		p.advance()
		return true
	}
	return false
}

// acceptComma goes over a comma, and reports whether there is one. Comments and an empty line before
// it come to stand before what follows, in their order.
func (p *parser) acceptComma(c **Comments, mark int) bool {
	if !p.is(',') {
		return false
	}
	gap, before := p.tok.gap, p.takeComments()
	p.advance()
	p.tok.behind = p.tok.behind && len(before) == 0
	after := p.tok.comments
	if p.tok.behind {
		after = after[1:] // the first ends the line of the comma
	}
	switch {
	case !gap:
	case len(after) > 0:
		after[0].Gap = true
	default:
		p.tok.gap = true
	}
	if len(before) > 0 {
		p.tok.comments = append(before, p.tok.comments...)
	}
	p.attachComments(c, mark)
	return true
}

// acceptOptional goes over a question mark. Comments before it come to stand behind it.
func (p *parser) acceptOptional() {
	behind, before := p.tok.behind, p.takeComments()
	p.advance()
	if len(before) > 0 {
		p.tok.comments, p.tok.behind = append(before, p.tok.comments...), behind
	}
}

// expect goes over a token of a kind, or reports that it is missing, and unwinds.
func (p *parser) expect(kind tokenKind, what string) Word {
	if !p.is(kind) {
		p.expected(what, "")
	}
	return p.advance()
}

func (p *parser) name(what string) Word {
	if p.is(tokenName) && len(p.tok.text) > MaxName {
		p.fail(p.tok.Pos, len(p.tok.text), "a name has at most %d characters, not %d", MaxName, len(p.tok.text))
	}
	return p.expect(tokenName, what)
}

func (p *parser) file(name string) *File {
	f := &File{Name: name}
	for !p.is(tokenEnd) {
		if it := p.item(); it != nil {
			f.Items = append(roomFor(f.Items, 1), it)
		}
	}
	f.Tail = p.takeComments()
	return f
}

// recovering runs a part of the grammar and reports whether it went through.
func (p *parser) recovering(part func()) (ok bool) {
	depth := p.depth
	defer func() {
		if ok {
			return
		}
		if r := recover(); r != (any)(failed{}) {
			panic(r)
		}
		p.depth, p.stray = depth, nil
	}()
	part()
	return true
}

// separated reads the parts of a list up to the token that closes it, each with the
// comma after it. A part returns its comments.
func (p *parser) separated(closing tokenKind, what string, part func() **Comments) (tail []Comment) {
	for !p.is(closing) {
		mark := len(p.stray)
		c := part()
		p.attachComments(c, mark)
		if p.acceptComma(c, mark) {
			continue
		}
		if !p.is(closing) {
			p.expected(what, "")
		}
	}
	tail = p.takeComments()
	p.advance()
	return tail
}
