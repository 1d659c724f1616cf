package schema

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"

	"skep/spec/mail"
)

// Bounds of a check. One party may write both the schema and the document, and the
// library cannot be interrupted: it takes some ten microseconds and a kilobyte for
// each step.
const (
	maxEffort       = 50_000
	maxInstructions = 20_000 // of all patterns of a schema, with their repeats written out
)

// effort is what a schema makes of each value that is held against it.
type effort struct {
	own   int // steps for any value
	reads int // how often the whole value is read
	// instructions of a pattern, each of which may look at each byte.
	instructions int
	same         []*effort // for the same value
	items        *effort
	members      map[string]*effort
	others       *effort // for members that have no schema of their own
}

// effortOf reads a schema that the lint has passed.
func effortOf(v any) *effort {
	node, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	e := &effort{own: 1, members: map[string]*effort{}}
	for key, v := range node {
		switch key {
		case "enum", "const":
			e.own, e.reads = e.own+size(v), e.reads+1
		case "uniqueItems":
			e.reads++
		case "required":
			e.own += size(v)
		case "pattern":
			text, _ := v.(string)
			e.own, e.instructions = e.own+size(v), instructions(text)
		case "items":
			e.items = effortOf(v)
		case "additionalProperties":
			e.others = effortOf(v)
		case "properties":
			named, _ := v.(map[string]any)
			for name, inner := range named {
				e.own, e.members[name] = e.own+1, effortOf(inner)
			}
		case "not", "if", "then", "else":
			e.same = append(e.same, effortOf(v))
		case "allOf", "anyOf", "oneOf":
			list, _ := v.([]any)
			for _, inner := range list {
				e.same = append(e.same, effortOf(inner))
			}
		}
	}
	return e
}

// spend takes the steps of a check from those that are left. It stops when there are
// none.
func (e *effort) spend(left *int, v any) {
	if e == nil || *left < 0 {
		return
	}
	*left -= e.own
	if e.reads > 0 {
		*left -= e.reads * size(v)
	}
	switch v := v.(type) {
	case string:
		*left -= len(v)/4096 + e.instructions*len(v)/1024
	case []any:
		for _, item := range v {
			e.items.spend(left, item)
		}
	case map[string]any:
		*left -= len(v)
		for name, value := range v {
			inner, own := e.members[name]
			if !own {
				inner = e.others
			}
			inner.spend(left, value)
		}
	}
	for _, part := range e.same {
		part.spend(left, v)
	}
}

// size is what it takes to read a value, in steps.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 64
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case map[string]any:
		for name, value := range v {
			n += len(name)/64 + size(value)
		}
	case json.Number:
		n += len(v) / 64
	}
	return n
}

// affordable refuses a value that would take too long to check.
func (e *effort) affordable(v any) error {
	left := maxEffort
	if e.spend(&left, v); left < 0 {
		return fmt.Errorf("%w: has more parts than its schema can be held against", mail.ErrLimit)
	}
	return nil
}

// instructions is what a pattern becomes, at most; a pattern that is none has none.
func instructions(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return written(re)
}

func written(re *syntax.Regexp) int {
	n := 2
	if re.Op == syntax.OpLiteral {
		n += len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += written(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
