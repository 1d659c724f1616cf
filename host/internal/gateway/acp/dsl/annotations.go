package dsl

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"skep/host/internal/spelling"
)

// Annotations that have an effect, by what they stand before. Others are for readers.
var (
	recordAnnotations = []string{"open", "closed"}
	aliasAnnotations  = []string{"plain", "field"}
)

// warn adds what is probably not meant but works, unless there is enough of it.
func (r *resolver) warn(at Pos, width int, suggestion, format string, args ...any) {
	if len(r.schema.Warnings) >= maxFaults {
		return
	}
	f := r.source.fault(at, width, fmt.Sprintf(format, args...))
	f.Suggestion = suggestion
	r.schema.Warnings = append(r.schema.Warnings, f)
}

// annotations warns of those without an effect where they stand, and refuses what
// contradicts another.
func (r *resolver) annotations(all []Annotation, effective []string) {
	kind := "" // open or closed, once one of them stands there
	for _, a := range all {
		name, width := a.Name.Text, utf8.RuneCountInString(a.Name.Text)
		if slices.Contains(effective, name) && slices.Contains(recordAnnotations, name) {
			if kind != "" && kind != name {
				r.failWord(a.Name, "the record cannot be open and closed")
			}
			kind = name
		}
		switch {
		case len(r.schema.Warnings) >= maxFaults:
			return
		case slices.Contains(effective, name):
		case slices.Contains(recordAnnotations, name):
			r.warn(a.Name.Pos, width, "", "@%s has no effect here: it stands before a record", name)
		case slices.Contains(aliasAnnotations, name):
			r.warn(a.Name.Pos, width, "", "@%s has no effect here: it stands before a type that is a name for a built-in one", name)
		default:
			options := slices.Concat(recordAnnotations, aliasAnnotations)
			r.warn(a.Name.Pos, width, spelling.Nearest(name, options), "@%s has no effect; those that have one are @%s", clip(name), strings.Join(options, ", @"))
		}
	}
}

// effective are the annotations that have an effect before an item.
func (it *Item) effective() []string {
	switch {
	case it.Type == nil:
		return nil
	case it.Type.Record != nil:
		return recordAnnotations
	}
	if kind, has := builtIn[it.Type.Name]; has && kind < List {
		return aliasAnnotations
	}
	return nil
}

func (f *FieldExpr) effective() []string {
	if hasRecord(f.Type) {
		return recordAnnotations
	}
	return nil
}

// isOpen reports what annotations want of members that are not declared.
func isOpen(all []Annotation, unless bool) bool {
	for _, a := range all {
		switch a.Name.Text {
		case "open":
			unless = true
		case "closed":
			unless = false
		}
	}
	return unless
}

// wrapperMember is how the wrapper of an alias calls its value.
func (r *resolver) wrapperMember(t *Type) string {
	member := "value"
	switch {
	case t.Name == "Content":
		return ""
	case t.Name == "Timestamp":
		member = "time"
	case strings.HasSuffix(t.Name, "ID"):
		member = "id"
	}
	for _, a := range t.expr.Annotations {
		switch a.Name.Text {
		case "plain":
			return ""
		case "field":
			member = r.fieldArgument(a)
		}
	}
	return member
}

// fieldArgument is the name that @field gives.
func (r *resolver) fieldArgument(a Annotation) string {
	if len(a.Args) != 1 {
		r.failWord(a.Name, "@field has one argument, the name of a field: @field(\"value\")")
		return ""
	}
	member := strings.Trim(a.Args[0].Value, `"`)
	if n := spanOf(member, isNamePart); n < len(member) || n == 0 || !isAlpha(member[0]) {
		r.failWord(a.Name, "@field has the name of a field, not %q", clip(member))
	}
	return member
}
