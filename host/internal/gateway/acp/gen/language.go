package gen

import (
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
)

// language is what the generators of languages with one file share: the names of types,
// and how functions and types are written where they are used.
type language struct {
	code
	names map[*dsl.Type]string
	// builtIn are the types of the language; list and dictionary have %s in the place of
	// what is in them.
	builtIn          map[dsl.Kind]string
	list, dictionary string
	// function writes the name of a function as a value.
	function func(name string) string
	// read and write begin the names of the support's functions, to and from the names of the
	// generated ones.
	read, write, to, from string
	// part names a built-in type in a function of the support.
	part func(string) string
}

// typeOf is a type where it is used.
func (l *language) typeOf(t *dsl.Type) string {
	switch t = t.Plain(); t.Kind {
	case dsl.List:
		return strings.ReplaceAll(l.list, "%s", l.typeOf(t.Elem))
	case dsl.Map:
		return strings.ReplaceAll(l.dictionary, "%s", l.typeOf(t.Elem))
	case dsl.Alias, dsl.Enum, dsl.Record:
		return l.names[t]
	}
	return l.builtIn[t.Kind]
}

func (l *language) reads(t *dsl.Type) string  { return l.functionOf(t, l.read, l.to) }
func (l *language) writes(t *dsl.Type) string { return l.functionOf(t, l.write, l.from) }

// functionOf is the function for values of a type.
func (l *language) functionOf(t *dsl.Type, builtIn, own string) string {
	switch t = t.Plain(); t.Kind {
	case dsl.List:
		return builtIn + l.part("List") + "(" + l.functionOf(t.Elem, builtIn, own) + ")"
	case dsl.Map:
		return builtIn + l.part("Map") + "(" + l.functionOf(t.Elem, builtIn, own) + ")"
	case dsl.Alias, dsl.Enum, dsl.Record:
		return l.function(own + l.names[t])
	}
	return l.function(builtIn + l.part(builtInName(t.Kind)))
}

// call is a call of the function for values of a built-in type.
func (l *language) call(prefix string, t *dsl.Type, args string) string {
	return prefix + l.part(builtInName(t.Plain().Kind)) + "(" + args + ")"
}

// block writes a comment of several lines, as /** does.
func (l *language) block(indent string, lines []string) {
	switch len(lines) {
	case 0:
	case 1:
		l.line("%s/** %s */", indent, harmless(lines[0]))
	default:
		l.line("%s/**", indent)
		l.doc(indent+" *", lines)
		l.line("%s */", indent)
	}
}

// answers are the rules of each enum that has some, in their order.
func answers(s *dsl.Schema) (enums []*dsl.Type, rules map[*dsl.Type][]dsl.Rule) {
	rules = map[*dsl.Type][]dsl.Rule{}
	for _, r := range s.Rules {
		if !slices.Contains(enums, r.Enum) {
			enums = append(enums, r.Enum)
		}
		if r.Answer != "" {
			rules[r.Enum] = append(rules[r.Enum], r)
		}
	}
	return enums, rules
}

// reasons lists the values of an enum as reasons do.
func reasons(t *dsl.Type) string { return check.ValueList(t) }
