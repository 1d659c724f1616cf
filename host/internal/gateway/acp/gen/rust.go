package gen

import (
	_ "embed"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

//go:embed support/json.rs
var rustSupport string

// rustAllows are warnings that declared names, and parts that a file does not need, may cause.
const rustAllows = "#![allow(dead_code, unused_variables, non_camel_case_types)]"

// rust makes one module, for Rust 1.63.
func rust(s *dsl.Schema, _ Options) ([]File, error) {
	g := &rustCode{circles: circlesOf(s), language: language{
		names: typeNames(s, rustKeywords, rustTypes),
		builtIn: map[dsl.Kind]string{
			dsl.String: "String", dsl.Int: "i32", dsl.Long: "i64", dsl.Float: "f64", dsl.Boolean: "bool", dsl.Bytes: "Bytes",
		},
		list: "Vec<%s>", dictionary: "BTreeMap<String, %s>",
	}}
	g.line("// %s\n\n//! Messages as they were declared.\n\n%s\n\nuse std::collections::BTreeMap;\nuse std::fmt;\n", Header, rustAllows)
	g.line("%s", strings.TrimSpace(rustSupport))
	for _, t := range named(s) {
		g.line("")
		g.doc("///", t.Doc)
		switch t.Kind {
		case dsl.Enum:
			g.enum(t)
		case dsl.Record:
			g.record(t)
		default:
			g.wrapper(t)
		}
	}
	g.rules(s)
	return []File{{"messages.rs", g.b.String()}}, nil
}

type rustCode struct {
	language
	circles *circles
}

func (g *rustCode) wrapper(t *dsl.Type) {
	name := g.names[t]
	g.line("#[derive(Clone, Debug, PartialEq)]\npub struct %s(pub %s);\n", name, g.typeOf(t.Elem))
	g.wire(name, func() {
		g.line("        Ok(%s(Wire::read(v, at)?))", name)
	}, func() {
		g.line("        self.0.write(w, at)")
	})
}

// wire writes how values of a type are read and written.
func (g *rustCode) wire(name string, read, write func()) {
	g.line("impl Wire for %s {\n    fn read(v: &Value, at: &Place) -> Result<%s, MessageError> {", name, name)
	read()
	g.line("    }\n\n    fn write(&self, w: &mut Writer, at: &Place) -> Result<(), MessageError> {")
	write()
	g.line("    }\n}")
}

// rustValues names the values of an enum, as words with a capital each.
func rustValues(t *dsl.Type) map[string]string {
	taken, names := newScope(rustKeywords), map[string]string{}
	for _, v := range t.Values {
		words := strings.Split(v.Name, "_")
		for i, word := range words {
			if strings.ToUpper(word) == word {
				words[i] = strings.ToLower(word)
			}
		}
		names[v.Name] = taken.claim(dsl.Pascal(strings.Join(words, "_")))
	}
	return names
}

func (g *rustCode) enum(t *dsl.Type) {
	name, members := g.names[t], rustValues(t)
	g.line("#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum %s {", name)
	for _, v := range t.Values {
		g.doc("    ///", v.Doc)
		g.line("    %s,", members[v.Name])
	}
	g.line("}\n\nimpl %s {\n    /// The value as it is in a message.\n    pub fn as_str(self) -> &'static str {\n        match self {", name)
	for _, v := range t.Values {
		g.line("            %s::%s => %q,", name, members[v.Name], v.Name)
	}
	g.line("        }\n    }\n}\n")
	g.wire(name, func() {
		g.line("        match v.text() {")
		for _, v := range t.Values {
			g.line("            Some(%q) => Ok(%s::%s),", v.Name, name, members[v.Name])
		}
		g.line("            _ => at.failed(%q),\n        }", "is none of "+reasons(t))
	}, func() {
		g.line("        w.text.push_str(&quoted(self.as_str()));\n        Ok(())")
	})
}

// fieldType is the type of a field. A record that may be inside of itself is in a Box.
func (g *rustCode) fieldType(t *dsl.Type, f dsl.Field) string {
	name := g.typeOf(f.Type)
	if inner := f.Type.Plain(); inner.Kind == dsl.Record && g.circles.of[inner] == g.circles.of[t] {
		name = "Box<" + name + ">"
	}
	if f.Optional {
		name = "Option<" + name + ">"
	}
	return name
}

// circles numbers records so that those have one number that may be inside of each other,
// lists and maps aside: strongly connected components, after Tarjan,
// https://doi.org/10.1137/0201010.
type circles struct {
	of          map[*dsl.Type]int
	index, link map[*dsl.Type]int
	open        []*dsl.Type
}

func circlesOf(s *dsl.Schema) *circles {
	c := &circles{of: map[*dsl.Type]int{}, index: map[*dsl.Type]int{}, link: map[*dsl.Type]int{}}
	for _, t := range s.Types {
		if t.Kind == dsl.Record && c.index[t] == 0 {
			c.visit(t)
		}
	}
	return c
}

func (c *circles) visit(t *dsl.Type) {
	c.index[t] = len(c.index) + 1
	c.link[t] = c.index[t]
	begin := len(c.open)
	c.open = append(c.open, t)
	for _, f := range t.Fields {
		inner := f.Type.Plain()
		if inner.Kind != dsl.Record {
			continue
		}
		if c.index[inner] == 0 {
			c.visit(inner)
			c.link[t] = min(c.link[t], c.link[inner])
		} else if c.of[inner] == 0 {
			c.link[t] = min(c.link[t], c.index[inner])
		}
	}
	if c.link[t] == c.index[t] {
		for _, member := range c.open[begin:] {
			c.of[member] = c.index[t]
		}
		c.open = c.open[:begin]
	}
}

func (g *rustCode) record(t *dsl.Type) {
	name, members := g.names[t], memberNames(t, snake, rustKeywords, "extra")
	declared := "&[" + list(fieldNames(t)) + "]"
	g.line("#[derive(Clone, Debug, PartialEq)]\npub struct %s {", name)
	for _, f := range t.Fields {
		g.doc("    ///", f.Doc)
		g.line("    pub %s: %s,", members[f.Name], g.fieldType(t, f))
	}
	if t.Open {
		g.line("    /// The members that are not declared, each with its text.\n    pub extra: BTreeMap<String, String>,")
	}
	g.line("}\n\nimpl %s {\n    /// Reads one from UTF-8.\n    pub fn decode(text: &[u8]) -> Result<%s, MessageError> {\n        decode(text, %q)\n    }\n", name, name, t.Name)
	g.line("    /// Writes it.\n    pub fn encode(&self) -> Result<String, MessageError> {\n        encode(self, %q)\n    }\n", t.Name)
	g.line("    /// Returns why it cannot be written.\n    pub fn validate(&self) -> Result<(), MessageError> {\n        self.encode().map(|_| ())\n    }\n}\n")
	g.wire(name, func() { g.readRecord(t, members, declared) }, func() { g.writeRecord(t, members, declared) })
}

func (g *rustCode) readRecord(t *dsl.Type, members map[string]string, declared string) {
	g.line("        let o = v.members(at)?;\n        let t = %s {", g.names[t])
	for _, f := range t.Fields {
		read := "field"
		if f.Optional {
			read = "optional"
		}
		g.line("            %s: o.%s(%q, at)?,", members[f.Name], read, f.Name)
	}
	if t.Open {
		g.line("            extra: o.others(%s)?,", declared)
	}
	g.line("        };")
	if !t.Open {
		g.line("        o.no_others(at, %s)?;", declared)
	}
	g.line("        Ok(t)")
}

func (g *rustCode) writeRecord(t *dsl.Type, members map[string]string, declared string) {
	g.line("        w.open('{')?;")
	for _, f := range t.Fields {
		write := "field"
		if f.Optional {
			write = "optional"
		}
		g.line("        w.%s(%q, &self.%s, at)?;", write, f.Name, members[f.Name])
	}
	if t.Open {
		g.line("        w.others(&self.extra, at, %s)?;", declared)
	}
	g.line("        w.close('}');\n        Ok(())")
}

func (g *rustCode) rules(s *dsl.Schema) {
	enums, rules := answers(s)
	for _, enum := range enums {
		name, members := g.names[enum], rustValues(enum)
		g.line("\nimpl %s {\n    /// The answer that is expected, and the fields that it has from what it answers.", name)
		g.line("    pub fn expects(self) -> Option<(%s, &'static [&'static str])> {\n        match self {", name)
		for _, r := range rules[enum] {
			g.line("            %s::%s => Some((%s::%s, &[%s])),", name, members[r.On], name, members[r.Answer], list(r.Carries))
		}
		if len(rules[enum]) < len(enum.Values) {
			g.line("            _ => None,")
		}
		g.line("        }\n    }\n}")
	}
}
