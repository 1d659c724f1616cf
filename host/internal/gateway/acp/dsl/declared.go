package dsl

import "strings"

// Declared is one declaration in a line.
type Declared struct{ Name, Text string }

// Declared lists what names stand for: Header.reply_to for MessageID?, and a value of an
// enum for the answer that it expects.
func (s *Schema) Declared() (all []Declared) {
	for _, t := range s.Types {
		switch t.Kind {
		case Enum:
			for _, v := range t.Values {
				all = append(all, Declared{t.Name + "." + v.Name, s.answer(t, v.Name)})
			}
		case Record:
			for _, f := range t.Fields {
				text := f.Type.use()
				if f.Optional {
					text += "?"
				}
				all = append(all, Declared{t.Name + "." + f.Name, text})
			}
		default:
			all = append(all, Declared{t.Name, t.Elem.use()})
		}
	}
	return all
}

// answer is what a value of an enum expects.
func (s *Schema) answer(enum *Type, value string) string {
	for _, r := range s.Rules {
		switch {
		case r.Enum != enum || r.On != value:
		case r.Answer == "":
			return "expects " + Nothing
		case len(r.Carries) > 0:
			return "expects " + r.Answer + " { " + strings.Join(r.Carries, ", ") + " }"
		default:
			return "expects " + r.Answer
		}
	}
	return "value"
}

// use is a type where it is used.
func (t *Type) use() string {
	switch t.Kind {
	case List:
		return "List<" + t.Elem.use() + ">"
	case Map:
		return "Map<String, " + t.Elem.use() + ">"
	}
	for name, kind := range builtIn {
		if kind == t.Kind {
			return name
		}
	}
	return t.Name
}
