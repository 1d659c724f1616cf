package schema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// lint refuses every schema that the library would read otherwise than its author
// meant. A keyword that the library does not know, and any newer than draft 7, it
// ignores without a word; so does it with what stands beside a $ref; a $ref that
// it cannot resolve it fetches. And since documents are decoded without the values
// of their numbers (see decode), no schema may look at one.
func lint(docs ...map[string]any) error {
	l := linter{docs: make(map[string]map[string]any)}
	for _, doc := range docs {
		id, _ := doc["$id"].(string)
		base, err := url.Parse(id)
		if err != nil || !base.IsAbs() {
			return fmt.Errorf("schema %q: $id must be an absolute URI", id)
		}
		l.docs[id] = doc
	}
	for _, doc := range docs {
		l.id, _ = doc["$id"].(string)
		if err := l.schema("#", doc); err != nil {
			return err
		}
	}
	return nil
}

type linter struct {
	docs map[string]map[string]any // by $id
	id   string                    // of the document being read
	// open is for the schemas of strangers, patterns counts the bytes of theirs, and
	// instructions what they become.
	open                   bool
	patterns, instructions int
}

func (l *linter) errorf(at, format string, args ...any) error {
	return fmt.Errorf("schema %s at %s: %s", l.id, at, fmt.Sprintf(format, args...))
}

// schema checks one schema and those in it. Keys are visited in order, so that a
// schema with several faults always reports the same one.
func (l *linter) schema(at string, v any) error {
	node, ok := v.(map[string]any)
	if !ok {
		return l.errorf(at, "must be an object")
	}
	if ref, ok := node["$ref"]; ok && !l.open {
		if len(node) > 1 {
			return l.errorf(at, "$ref must stand alone")
		}
		return l.ref(at, ref)
	}
	for _, k := range slices.Sorted(maps.Keys(node)) {
		if err := l.keyword(at+"/"+k, at == "#", k, node[k]); err != nil {
			return err
		}
	}
	return nil
}

func (l *linter) keyword(at string, root bool, key string, v any) error {
	if l.open {
		if known, err := l.openKeyword(at, key, v); known {
			return err
		}
	}
	switch key {
	case "$schema", "$id", "definitions":
		if !root {
			return l.errorf(at, "belongs to the root")
		}
		if key == "definitions" {
			return l.named(at, v)
		}
		return nil
	case "title", "description", "default", "required", "minLength", "maxLength", "minItems", "maxItems":
		return nil
	case "properties":
		return l.named(at, v)
	case "items", "if", "then":
		return l.schema(at, v)
	case "allOf":
		return l.list(at, v)
	case "additionalProperties":
		if v != false {
			return l.errorf(at, "must be false")
		}
		return nil
	case "type", "enum", "const", "format":
		return l.value(at, key, v)
	}
	return l.errorf(at, "is not a keyword that is known to work")
}

// named checks the schemas in an object of them.
func (l *linter) named(at string, v any) error {
	node, ok := v.(map[string]any)
	if !ok {
		return l.errorf(at, "must be an object")
	}
	for _, k := range slices.Sorted(maps.Keys(node)) {
		if err := l.schema(at+"/"+k, node[k]); err != nil {
			return err
		}
	}
	return nil
}

func (l *linter) list(at string, v any) error {
	all, ok := v.([]any)
	if !ok {
		return l.errorf(at, "must be an array")
	}
	for i, e := range all {
		if err := l.schema(fmt.Sprintf("%s/%d", at, i), e); err != nil {
			return err
		}
	}
	return nil
}

// value checks the keywords whose operands are one or several strings.
func (l *linter) value(at, key string, v any) error {
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	for _, e := range all {
		s, ok := e.(string)
		if !ok {
			return l.errorf(at, "must hold strings only")
		}
		if key == "type" && (s == "number" || s == "integer") {
			return l.errorf(at, "must not be %s: numbers are not compared", s)
		}
		if _, known := formats[s]; key == "format" && !known {
			return l.errorf(at, "format %q has no checker", s)
		}
	}
	return nil
}

// ref checks that a reference leads to a definition in the linted documents.
func (l *linter) ref(at string, v any) error {
	s, _ := v.(string)
	ref, err := url.Parse(s)
	if err != nil {
		return l.errorf(at, "$ref is no URI")
	}
	base, err := url.Parse(l.id)
	if err != nil {
		return l.errorf(at, "$id is no URI")
	}
	target := base.ResolveReference(ref)
	name, ok := strings.CutPrefix(target.Fragment, "/definitions/")
	target.Fragment = ""
	defs, _ := l.docs[target.String()]["definitions"].(map[string]any)
	if _, found := defs[name]; !ok || !found {
		return l.errorf(at, "$ref %q leads to no definition in the set", s)
	}
	return nil
}
