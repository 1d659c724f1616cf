package dsl

import "strings"

// Kind is what a type is.
type Kind int

// Kinds of types. Those before List are built in and have no parts; Alias, Enum and
// Record have names.
const (
	String Kind = iota
	Int
	Long
	Float
	Boolean
	Bytes
	List
	Map
	Alias
	Enum
	Record
)

// builtIn are the types that need no declaration, by name.
var builtIn = map[string]Kind{
	"String": String, "Int": Int, "Long": Long, "Float": Float, "Boolean": Boolean, "Bytes": Bytes, "List": List, "Map": Map,
}

// Type is a resolved type. Types that have names are shared: each is one *Type.
type Type struct {
	Kind Kind
	Name string // of an Alias, Enum or Record
	Doc  []string

	// Elem is what an Alias stands for, and what is in a List or Map. The keys of a Map
	// are texts.
	Elem *Type
	// Member is how the wrapper of an alias calls its value; it is empty where the alias
	// is only another name.
	Member string
	// Values are the words of an Enum.
	Values []EnumValue
	// Fields are the fields of a Record.
	Fields []Field
	// Open is set for a Record that keeps members it does not declare.
	Open bool
	at   Pos // right behind the small one, with which it shares its memory
	// Inside is the record in which a Record is written, and Path names it from there:
	// Message.header.
	Inside *Type
	Path   string

	source *source
	expr   *Item // of a declared type
}

// EnumValue is one value of an Enum.
type EnumValue struct {
	Name string
	Doc  []string
}

// Field is one field of a Record.
type Field struct {
	Name     string
	Type     *Type
	Optional bool
	Doc      []string
	at       Pos
}

// Rule is the answer that a value expects.
type Rule struct {
	Enum    *Type
	On      string
	Answer  string   // empty for none
	Carries []string // the fields that the answer has from what it answers
}

// Schema is what a file and those it imports declare.
type Schema struct {
	// Name is the file's, without .acp.
	Name string
	// Types are those with names, as they are declared; a record that is written inside
	// of another comes before it.
	Types    []*Type
	Rules    []Rule
	Warnings Faults
}

// Plain is the type behind names that are only other names.
func (t *Type) Plain() *Type {
	for t.Kind == Alias && t.Member == "" {
		t = t.Elem
	}
	return t
}

// Records are the records in the order of Types.
func (s *Schema) Records() (all []*Type) {
	for _, t := range s.Types {
		if t.Kind == Record {
			all = append(all, t)
		}
	}
	return all
}

// Find returns the type of a name, nil for none.
func (s *Schema) Find(name string) *Type {
	for _, t := range s.Types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Root is the record that messages are: Message, or else the last one. It is nil where
// there is none.
func (s *Schema) Root() *Type {
	if t := s.Find("Message"); t != nil && t.Kind == Record {
		return t
	}
	if all := s.Records(); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// Fault is a fault of a field or, when field is empty, of a type.
func (t *Type) Fault(field, message string) Fault {
	at, width := t.at, len(t.Name)
	for _, f := range t.Fields {
		if f.Name == field {
			at, width = f.at, len(f.Name)
		}
	}
	return t.source.fault(at, width, message)
}

// Pascal writes a name with a capital at each of its words and without underscores.
// Other letters stay.
func Pascal(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// fold is what names must differ in: languages write one name with or without
// underscores and capitals.
func fold(name string) string {
	var short [64]byte // most names fit, and take no memory of their own
	return string(appendFold(short[:0], name))
}

func appendFold(to []byte, name string) []byte {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			to = append(to, c+'a'-'A')
		case c != '_':
			to = append(to, c)
		}
	}
	return to
}
