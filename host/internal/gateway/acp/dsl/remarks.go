package dsl

import (
	"regexp"
	"strings"
)

// The usual names. Others are right, too.
var (
	usualType  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	usualField = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	usualValue = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
)

// Remarks are what is unusual in the declarations: names in another style than the
// document's, and what has no comment. There are at most as many as a run has faults.
func (s *Schema) Remarks() (all Faults) {
	for _, t := range s.Types {
		all = append(all, t.remarks()...)
		if len(all) >= maxFaults {
			return all[:maxFaults]
		}
	}
	return all
}

func (t *Type) remarks() (all Faults) {
	add := func(field string, parts ...string) { all = append(all, t.Fault(field, strings.Join(parts, ""))) }
	name := t.Name
	if t.Inside != nil {
		name = t.Path // its field has the name and the comment
	}
	if t.Inside == nil && !usualType.MatchString(name) {
		add("", "the name of a type is usually written like ", Pascal(name))
	}
	if t.Inside == nil && len(t.Doc) == 0 {
		add("", name, " has no comment")
	}
	for _, v := range t.Values {
		if !usualValue.MatchString(v.Name) {
			add("", "the value ", v.Name, " is usually written in capitals")
		}
		if len(v.Doc) == 0 {
			add("", "the value ", v.Name, " has no comment")
		}
	}
	for _, f := range t.Fields {
		if !usualField.MatchString(f.Name) {
			add(f.Name, "the name of a field is usually written in small letters")
		}
		if len(f.Doc) == 0 && f.Type.Inside == nil {
			add(f.Name, f.Name, " has no comment")
		}
	}
	return all
}
