package gen

import (
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

// Declared names differ in more than capitals and underscores, so two of them never
// become one in any style.

// camel writes a name with a capital at each word but the first.
func camel(name string) string {
	p := dsl.Pascal(name)
	if strings.ToUpper(p) == p {
		return strings.ToLower(p) // of a name in capitals no word is left
	}
	return strings.ToLower(p[:1]) + p[1:]
}

// snake writes a name in small letters with underscores between words.
func snake(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if i > 0 && upper(name[i]) && name[i-1] != '_' && (!upper(name[i-1]) || i+1 < len(name) && lower(name[i+1])) {
			b.WriteByte('_')
		}
		b.WriteByte(name[i])
	}
	return strings.ToLower(b.String())
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }
func lower(c byte) bool { return c >= 'a' && c <= 'z' }

// initialisms are words that Go writes in capitals.
const initialisms = " api http id ip json uri url uuid "

// goName writes a name as Go exports it.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" && strings.Contains(initialisms, " "+strings.ToLower(word)+" ") {
			b.WriteString(strings.ToUpper(word))
		} else {
			b.WriteString(dsl.Pascal(word))
		}
	}
	return b.String()
}

// goValue writes the value of an enum as a part of a constant's name: words in capitals
// keep only the first.
func goValue(name string) string {
	var words []string
	for word := range strings.SplitSeq(name, "_") {
		if strings.ToUpper(word) == word {
			word = strings.ToLower(word)
		}
		words = append(words, word)
	}
	return goName(strings.Join(words, "_"))
}

// scope gives each name once. A name that is taken or reserved gets an underscore.
type scope map[string]bool

func newScope(reserved ...string) scope {
	s := scope{}
	for _, words := range reserved {
		for _, w := range strings.Fields(words) {
			s[w] = true
		}
	}
	return s
}

func (s scope) claim(name string) string {
	for s[name] {
		name += "_"
	}
	s[name] = true
	return name
}

// typeNames names the types of a schema in a language.
func typeNames(s *dsl.Schema, reserved ...string) map[*dsl.Type]string {
	taken, names := newScope(reserved...), map[*dsl.Type]string{}
	for _, t := range s.Types {
		names[t] = taken.claim(dsl.Pascal(t.Name))
	}
	return names
}

// memberNames names the fields of a record in a language.
func memberNames(t *dsl.Type, style func(string) string, reserved ...string) map[string]string {
	taken, names := newScope(reserved...), map[string]string{}
	for _, f := range t.Fields {
		names[f.Name] = taken.claim(style(f.Name))
	}
	return names
}
