package dsl

import "fmt"

// Unread lists the declared types that are no part of a record, each at its place. A
// reader of that record has no use for them.
func (s *Schema) Unread(root *Type) (all Faults) {
	parts := map[*Type]bool{}
	addParts(parts, root)
	for _, t := range s.Types {
		if t.Inside == nil && !parts[t] {
			all = append(all, t.Fault("", fmt.Sprintf("the type %s is in no %s", t.Name, root.Name)))
		}
	}
	return all
}

// addParts adds a type and the types that it is made of.
func addParts(parts map[*Type]bool, t *Type) {
	if t == nil || parts[t] {
		return
	}
	parts[t] = true
	addParts(parts, t.Elem)
	for _, f := range t.Fields {
		addParts(parts, f.Type)
	}
}
