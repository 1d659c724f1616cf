package dsl

import "strings"

// Format writes a tree in the one form that all files have: a field a line, two spaces
// a level, comments where they were. What it writes is read as an equal tree.
func Format(f *File) string {
	w := &formatter{}
	for i, it := range f.Items {
		apart := i > 0 && (spreads(f.Items[i-1]) || spreads(it) || f.Items[i-1].Kind() != it.Kind())
		w.item(it, i == 0, apart)
	}
	w.writeComments(f.Tail, len(f.Items) == 0)
	return w.b.String()
}

// spreads reports whether an item has more than one line.
func spreads(it *Item) bool {
	return it.Enum != nil || it.Type != nil && hasRecord(it.Type)
}

func hasRecord(t *TypeExpr) bool {
	if t.Record != nil {
		return true
	}
	for _, a := range t.Args {
		if hasRecord(a) {
			return true
		}
	}
	return false
}

type formatter struct {
	b     strings.Builder
	depth int
}

func (w *formatter) line(parts ...string) {
	w.indent()
	w.text(parts...)
	w.b.WriteByte('\n')
}

func (w *formatter) indent() {
	for range w.depth {
		w.b.WriteString("  ")
	}
}

func (w *formatter) text(parts ...string) {
	for _, p := range parts {
		w.b.WriteString(p)
	}
}

// writeComments writes lines of comment; the first of a block has no empty line before it.
func (w *formatter) writeComments(all []Comment, first bool) {
	for i, c := range all {
		if c.Gap && (i > 0 || !first) {
			w.b.WriteByte('\n')
		}
		w.line(c.Text)
	}
}

// writeLead writes what stands before an item, a field or a value.
func (w *formatter) writeLead(c *Comments, first bool) {
	if c == nil {
		c = &Comments{}
	}
	w.writeComments(c.Lead, first)
	if c.Gap && (!first || len(c.Lead) > 0) {
		w.b.WriteByte('\n')
	}
	w.indent()
}

// writeTrail writes what closes a line.
func (w *formatter) writeTrail(c *Comments, comma string) {
	w.text(comma)
	if c != nil && c.Trail != "" {
		w.text(" ", c.Trail)
	}
	w.b.WriteByte('\n')
}

func (w *formatter) item(it *Item, first, apart bool) {
	c := Comments{}
	if it.Comments != nil {
		c = *it.Comments
	}
	if apart && len(c.Lead) > 0 {
		c.Lead = append([]Comment{{c.Lead[0].Text, true}}, c.Lead[1:]...)
	} else if apart {
		c.Gap = true
	}
	w.writeLead(&c, first)
	w.annotations(it.Annotations)
	w.text(string(it.Kind()), " ")
	switch it.Kind() {
	case TypeItem:
		w.text(it.Name.Text, " = ")
		w.typeExpr(it.Type)
	case EnumItem:
		w.text(it.Name.Text, " {\n")
		w.values(it.Enum)
	case SemanticsItem:
		w.text(it.Name.Text, " expects ", it.Semantics.Answer.Text)
		for i, c := range it.Semantics.Carries {
			w.text(opening(i, " { "), c.Text)
		}
		if len(it.Semantics.Carries) > 0 {
			w.text(" }")
		}
	case ImportItem:
		w.text(quote(it.Name.Text))
	}
	w.writeTrail(&c, "")
}

// opening is what comes before the i-th part of a list.
func opening(i int, open string) string {
	if i == 0 {
		return open
	}
	return ", "
}

func quote(text string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`) + `"`
}

func (w *formatter) values(e *EnumExpr) {
	w.depth++
	for i, v := range e.Values {
		w.writeLead(v.Comments, i == 0)
		w.text(v.Name.Text)
		w.writeTrail(v.Comments, comma(i, len(e.Values)))
	}
	w.writeComments(e.Tail, len(e.Values) == 0)
	w.depth--
	w.text("}")
}

func comma(i, of int) string {
	if i < of-1 {
		return ","
	}
	return ""
}

func (w *formatter) annotations(all []Annotation) {
	for _, a := range all {
		w.text("@", a.Name.Text)
		for i, arg := range a.Args {
			w.text(opening(i, "("))
			if arg.Key != "" {
				w.text(arg.Key, "=")
			}
			w.text(arg.Value)
		}
		if len(a.Args) > 0 {
			w.text(")")
		}
		w.text(" ")
	}
}

func (w *formatter) typeExpr(t *TypeExpr) {
	if t.Record != nil {
		w.record(t.Record)
	}
	w.text(t.Name)
	for i, a := range t.Args {
		w.text(opening(i, "<"))
		w.typeExpr(a)
	}
	if len(t.Args) > 0 {
		w.text(">")
	}
	if t.Optional {
		w.text("?")
	}
}

func (w *formatter) record(r *RecordExpr) {
	if len(r.Fields) == 0 && len(r.Tail) == 0 {
		w.text("{}")
		return
	}
	w.text("{\n")
	w.depth++
	for i, f := range r.Fields {
		w.writeLead(f.Comments, i == 0)
		w.annotations(f.Annotations)
		w.text(f.Name.Text, ": ")
		w.typeExpr(f.Type)
		w.writeTrail(f.Comments, comma(i, len(r.Fields)))
	}
	w.writeComments(r.Tail, len(r.Fields) == 0)
	w.depth--
	w.indent()
	w.text("}")
}
