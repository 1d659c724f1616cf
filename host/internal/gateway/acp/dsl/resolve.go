package dsl

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"skep/host/internal/spelling"
)

// Bounds of a record and of an enum: a constructor of the Java virtual machine has at
// most 255 slots, and the code that makes an enum at most 64 KiB.
const (
	MaxFields = 120
	MaxValues = 1000
)

// resolve gives the trees of files their meaning, the files that are imported first.
func resolve(name string, files []parsed) (*Schema, Faults) {
	items := 0
	for _, f := range files {
		items += len(f.tree.Items)
	}
	r := &resolver{
		schema:   &Schema{Name: strings.TrimSuffix(path.Base(name), ".acp")},
		declared: make([]*Item, 0, items), nested: map[*Type][]*Type{},
		folded: make(map[string]*Item, items+len(builtIn)),
	}
	for name := range builtIn {
		r.folded[fold(name)] = &Item{Name: Word{Text: name}}
	}
	for _, f := range files {
		r.declare(f)
	}
	r.checkEndless()
	if len(r.faults) > 0 && len(r.declared) > maxDetailed {
		return nil, r.faults
	}
	r.makeTypes()
	for i := range r.types {
		if len(r.faults) >= maxFaults {
			return nil, r.faults
		}
		r.source = r.types[i].source
		r.define(&r.types[i])
	}
	r.order()
	r.rules(files)
	r.schema.Warnings = r.schema.Warnings.Sorted()
	return r.schema, r.faults
}

// parsed is a file with its text.
type parsed struct {
	tree   *File
	source *source
}

type resolver struct {
	schema   *Schema
	source   *source // of what is resolved now
	declared []*Item
	types    []Type            // of what is declared, in the same order
	nested   map[*Type][]*Type // the records that are written inside of a type
	// folded is what has a name that differs in no more. Items without a source stand for
	// built-in types, and for records inside of others.
	folded map[string]*Item
	faults Faults
}

// fail reports a fault, unless there are enough, and returns it.
func (r *resolver) fail(at Pos, width int, format string, args ...any) *Fault {
	if len(r.faults) >= maxFaults {
		return &Fault{}
	}
	r.faults = append(r.faults, r.source.fault(at, width, fmt.Sprintf(format, args...)))
	return &r.faults[len(r.faults)-1]
}

func (r *resolver) failWord(w Word, format string, args ...any) *Fault {
	return r.fail(w.Pos, utf8.RuneCountInString(w.Text), format, args...)
}

// maxDetailed is how many types there may be for faults to be reported in detail: a mistyped
// name is compared with all names, and other faults are shown beside those of names and
// endless types.
const maxDetailed = 400

// suggest adds the option that a word probably stands for.
func (r *resolver) suggest(f *Fault, word string, options func() []string) {
	if f.Message != "" && len(r.declared) <= maxDetailed {
		f.Suggestion = spelling.Nearest(word, options())
	}
}

// unique holds the name of a field or value against those before it.
func (r *resolver) unique(seen map[string]string, w Word, what string) bool {
	folded := fold(w.Text)
	first, again := seen[folded]
	if again {
		r.refuseAgain(first, w, what)
	} else {
		seen[folded] = w.Text
	}
	return !again
}

// refuseAgain reports a name that differs too little from the first one.
func (r *resolver) refuseAgain(first string, w Word, what string) {
	if first == w.Text {
		r.failWord(w, "%s %s is there already", what, clip(w.Text))
	} else {
		r.failWord(w, "%s %s differs from %s only in capitals or underscores, and in some languages not at all", what, clip(w.Text), clip(first))
	}
}

// declare notes the names of a file.
func (r *resolver) declare(f parsed) {
	r.source = f.source
	for _, it := range f.tree.Items {
		if len(it.Annotations) > 0 {
			r.annotations(it.Annotations, it.effective())
		}
		if it.Type == nil && it.Enum == nil {
			continue
		}
		if _, taken := builtIn[it.Name.Text]; taken {
			r.failWord(it.Name, "%s is built in and cannot be declared", it.Name.Text)
			continue
		}
		folded := fold(it.Name.Text)
		if first := r.folded[folded]; first != nil && first.Name.Text == it.Name.Text && first.source != f.source {
			r.failWord(it.Name, "the name %s is there already, in %s: an import cannot be extended, so begin with a copy of it", clip(it.Name.Text), first.source.file)
			continue
		} else if first != nil {
			r.refuseAgain(first.Name.Text, it.Name, "the name")
			continue
		}
		it.resolution = resolution{source: f.source, index: int32(len(r.declared))}
		r.folded[folded] = it
		r.declared = append(r.declared, it)
	}
}

// makeTypes makes a type of each declaration, to be defined.
func (r *resolver) makeTypes() {
	r.types = make([]Type, len(r.declared))
	for i, it := range r.declared {
		kind := Record
		switch {
		case it.Enum != nil:
			kind = Enum
		case it.isAlias():
			kind = Alias
		}
		r.types[i] = Type{Kind: kind, Name: it.Name.Text, Path: it.Name.Text, Doc: it.Doc(), at: it.Name.Pos, source: it.source, expr: it}
	}
}

// define fills a declared type.
func (r *resolver) define(t *Type) {
	it := t.expr
	switch t.Kind {
	case Enum:
		r.defineEnum(t, it)
	case Record:
		t.Open = isOpen(it.Annotations, t.Name == "Header")
		r.refuseOptional(it.Type, "a type is not optional itself: write ? at the fields that use it")
		r.defineRecord(t, it.Type.Record)
	default:
		r.defineAlias(t)
	}
}

func (r *resolver) refuseOptional(e *TypeExpr, message string) {
	if e.Optional {
		r.fail(e.Pos, 1, "%s", message)
	}
}

func (r *resolver) defineEnum(t *Type, it *Item) {
	if len(it.Enum.Values) == 0 {
		r.failWord(it.Name, "an enum has at least one value")
	}
	if len(it.Enum.Values) > MaxValues {
		r.failWord(it.Name, "an enum has at most %d values, not %d", MaxValues, len(it.Enum.Values))
	}
	seen := map[string]string{}
	for _, v := range it.Enum.Values {
		if r.unique(seen, v.Name, "the value") {
			t.Values = append(t.Values, EnumValue{v.Name.Text, v.Doc()})
		}
	}
}

func (r *resolver) defineRecord(t *Type, e *RecordExpr) {
	if len(e.Fields) == 0 {
		r.warn(t.at, len(t.Name), "", "the record has no fields")
	}
	if len(e.Fields) > MaxFields {
		r.fail(t.at, len(t.Name), "a record has at most %d fields, not %d", MaxFields, len(e.Fields))
	}
	seen := map[string]string{}
	t.Fields = make([]Field, 0, len(e.Fields))
	for _, f := range e.Fields {
		if len(f.Annotations) > 0 {
			r.annotations(f.Annotations, f.effective())
		}
		if !r.unique(seen, f.Name, "the field") {
			continue
		}
		field := Field{Name: f.Name.Text, Optional: f.Type.Optional, Doc: f.Doc(), at: f.Name.Pos}
		if field.Type = r.use(t, f, f.Type); field.Type == nil {
			field.Type = &Type{Kind: String} // the fault is there; its name is known to others
		}
		t.Fields = append(t.Fields, field)
	}
}

// use resolves a type where a field uses it, nil after a fault.
func (r *resolver) use(in *Type, f *FieldExpr, e *TypeExpr) *Type {
	if e.Record != nil {
		return r.inner(in, f, e.Record)
	}
	if it := r.find(e.Name); it != nil {
		r.arguments(e, 0)
		return &r.types[it.index]
	}
	kind, known := builtIn[e.Name]
	if !known {
		f := r.fail(e.Pos, len(e.Name), "there is no type %s", clip(e.Name))
		r.suggest(f, e.Name, func() []string {
			return append(slices.Sorted(maps.Keys(builtIn)), r.declaredNames()...)
		})
		f.Suggestion = cmp.Or(f.Suggestion, otherTypes[strings.ToLower(e.Name)])
		return nil
	}
	t := &Type{Kind: kind, at: e.Pos, source: r.source}
	switch kind {
	case List:
		if !r.arguments(e, 1) {
			return nil
		}
		t.Elem = r.use(in, f, e.Args[0])
	case Map:
		if !r.arguments(e, 2) {
			return nil
		}
		r.key(in, f, e.Args[0])
		t.Elem = r.use(in, f, e.Args[1])
	default:
		r.arguments(e, 0)
		return t
	}
	if t.Elem == nil {
		return nil
	}
	return t
}

// find returns the declaration of a type, nil for none.
func (r *resolver) find(name string) *Item {
	var short [64]byte
	it := r.folded[string(appendFold(short[:0], name))]
	if it == nil || it.Name.Text != name || it.source == nil {
		return nil
	}
	return it
}

func (r *resolver) declaredNames() (names []string) {
	for _, it := range r.declared {
		names = append(names, it.Name.Text)
	}
	slices.Sort(names)
	return names
}

// arguments checks how many there are, and that none is optional.
func (r *resolver) arguments(e *TypeExpr, want int) bool {
	for _, a := range e.Args {
		r.refuseOptional(a, "what a list or map holds is not optional: leave it out instead")
	}
	if len(e.Args) == want {
		return true
	}
	r.fail(e.Pos, len(e.Name), "%s has %d types between < and >, not %d", clip(e.Name), want, len(e.Args)).
		Message += map[int]string{1: ": List<String>", 2: ": Map<String, String>"}[want]
	return false
}

// key checks the type of a map's keys.
func (r *resolver) key(in *Type, f *FieldExpr, e *TypeExpr) {
	if e.Name != "String" || e.Record != nil {
		r.fail(e.Pos, max(len(e.Name), 1), "the keys of a map are of type String")
	}
}

// inner makes a type of a record that is written where it is used.
func (r *resolver) inner(in *Type, f *FieldExpr, e *RecordExpr) *Type {
	t := &Type{
		Kind: Record, Doc: f.Doc(), Inside: in, Path: in.Path + "." + f.Name.Text,
		at: f.Name.Pos, source: r.source, Open: isOpen(f.Annotations, f.Name.Text == "header"),
	}
	for _, name := range []string{Pascal(f.Name.Text), in.Name + Pascal(f.Name.Text)} {
		if _, taken := r.folded[fold(name)]; !taken && len(name) <= 2*MaxName {
			t.Name = name
			break
		}
	}
	if t.Name == "" {
		r.failWord(f.Name, "the record here needs a name, and %s and %s are taken: declare it as a type of its own", Pascal(f.Name.Text), clip(in.Name+Pascal(f.Name.Text)))
		return nil
	}
	r.folded[fold(t.Name)] = &Item{}
	r.nested[in] = append(r.nested[in], t)
	r.defineRecord(t, e)
	return t
}

// defineAlias resolves a type that stands for another.
func (r *resolver) defineAlias(t *Type) {
	e := t.expr.Type
	r.refuseOptional(e, "a type is not optional itself: write ? at the fields that use it")
	field := &FieldExpr{Name: t.expr.Name}
	t.Elem = r.use(t, field, e)
	if t.Elem == nil {
		t.Elem = &Type{Kind: String}
		return
	}
	if t.Elem.Kind < List {
		t.Member = r.wrapperMember(t)
	}
}

// order lists the types, inner ones first.
func (r *resolver) order() {
	var add func(t *Type)
	add = func(t *Type) {
		for _, inner := range r.nested[t] {
			add(inner)
		}
		r.schema.Types = append(r.schema.Types, t)
	}
	r.schema.Types = make([]*Type, 0, len(r.types))
	for i := range r.types {
		add(&r.types[i])
	}
}
