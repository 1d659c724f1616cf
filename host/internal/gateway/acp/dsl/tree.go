package dsl

import "strings"

// Pos is a place in a file; both numbers begin at 1, Col counts characters.
type Pos struct {
	Line, Col int32
	offset    int32 // in bytes, from 0
}

// Word is a name where it stands.
type Word struct {
	Text string
	Pos
}

// Comment is one line of comment, with its slashes.
type Comment struct {
	Text string
	Gap  bool // an empty line comes before it
}

// Comments are what is written about an item, a field or a value. They are nil where there is
// neither a comment nor an empty line: a hostile file has thousands of items and none of them.
type Comments struct {
	Lead  []Comment // on lines before it
	Gap   bool      // an empty line comes before it, after Lead
	Trail string    // at the end of its line, with its slashes; may be empty
}

// Doc is the text of the comments that belong to something: those right before it and
// the one behind it.
func (c *Comments) Doc() (lines []string) {
	if c == nil {
		return nil
	}
	lead := c.Lead
	for i := len(lead) - 1; i > 0; i-- {
		if lead[i].Gap {
			lead = lead[i:]
			break
		}
	}
	if c.Gap {
		lead = nil
	}
	if len(lead) > 0 {
		lines = make([]string, 0, len(lead)+1)
	}
	for _, l := range lead {
		lines = append(lines, commentText(l.Text))
	}
	if c.Trail != "" {
		lines = append(lines, commentText(c.Trail))
	}
	return lines
}

// openBlock drops the empty line before what comes first in its block.
func (c *Comments) openBlock(first bool) {
	switch {
	case !first || c == nil:
	case len(c.Lead) > 0:
		c.Lead[0].Gap = false
	default:
		c.Gap = false
	}
}

func commentText(text string) string {
	return strings.TrimSpace(strings.TrimPrefix(text, "//"))
}

// File is the syntax tree of a file.
type File struct {
	Name  string
	Items []*Item
	Tail  []Comment // after the last item
}

// ItemKind is the word with which an item begins.
type ItemKind string

// Kinds of items.
const (
	TypeItem      ItemKind = "type"
	EnumItem      ItemKind = "enum"
	SemanticsItem ItemKind = "semantics"
	ImportItem    ItemKind = "import"
)

// Item is one declaration. One of Type, Enum and Semantics is there, or none for an import.
type Item struct {
	*Comments
	Annotations []Annotation
	Name        Word      // what is declared; of semantics the value; of an import its file
	Type        *TypeExpr // of a type
	Enum        *EnumExpr // of an enum
	Semantics   *SemanticsExpr
	resolution
}

// resolution is what the resolver notes at an item that declares a type.
type resolution struct {
	source *source
	index  int32 // of its type
	state  cycleState
	// hops and nested are how many names an alias leads over, and how many lists and maps
	// what it stands for has in one another.
	hops, nested uint8
}

// Kind is the word with which the item begins.
func (it *Item) Kind() ItemKind {
	switch {
	case it.Type != nil:
		return TypeItem
	case it.Enum != nil:
		return EnumItem
	case it.Semantics != nil:
		return SemanticsItem
	}
	return ImportItem
}

// isAlias reports whether an item declares another name for a type.
func (it *Item) isAlias() bool { return it.Type != nil && it.Type.Record == nil }

// EnumExpr is what stands between the braces of an enum.
type EnumExpr struct {
	Values []Value
	Tail   []Comment // before its brace closes
}

// SemanticsExpr is what stands after the word expects.
type SemanticsExpr struct {
	Answer  Word   // a value, or nothing
	Carries []Word // the fields that the answer has from what it answers
}

// Nothing is the answer of semantics that expect none.
const Nothing = "nothing"

// Value is one value of an enum.
type Value struct {
	*Comments
	Name Word
}

// TypeExpr is a type where it is used: a name with its arguments, or a record.
type TypeExpr struct {
	Pos
	Optional bool // right behind Pos, where it takes no memory of its own
	Name     string
	Args     []*TypeExpr
	Record   *RecordExpr
}

// RecordExpr is a record where it is written.
type RecordExpr struct {
	Fields []*FieldExpr
	Tail   []Comment // before its brace closes
}

// FieldExpr is one field of a record.
type FieldExpr struct {
	*Comments
	Annotations []Annotation
	Name        Word
	Type        *TypeExpr
}

// Annotation is a remark for the reader of the declarations. Any name is allowed.
type Annotation struct {
	Name Word
	Args []Argument
}

// Argument is one argument of an annotation.
type Argument struct {
	Key   string // may be empty
	Value string // as it is written, a text with its quotes
}
