package gen

import (
	"errors"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
)

// golang makes a package of Go: the types, and the files of check that read and write.
func golang(s *dsl.Schema, opt Options) ([]File, error) {
	g := &goCode{names: typeNames(s), top: scope{}}
	for _, name := range g.names {
		g.top[name] = true
	}
	g.line("// %s\n\npackage %s\n", Header, opt.Package)
	if slices.ContainsFunc(s.Records(), func(t *dsl.Type) bool { return t.Open }) {
		g.line("import \"encoding/json\"\n")
	}
	for _, t := range s.Types {
		g.declaration(t)
	}
	g.rules(s.Rules)
	if g.err != nil {
		return nil, fmt.Errorf("format Go: %w", g.err)
	}
	files := []File{{"messages.go", strings.TrimRight(g.b.String(), "\n") + "\n"}}
	sources := check.Sources()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		body := strings.Replace(sources[name], "package check", "package "+opt.Package, 1)
		files = append(files, File{name, "// " + Header + "\n\n" + body})
	}
	return files, nil
}

type goCode struct {
	code
	names map[*dsl.Type]string
	top   scope
	// depth is how many blocks are open.
	depth int
	err   error
}

// line writes lines as gofmt lays out statements: to lay out all code costs most of the
// time and memory of a compilation.
func (g *goCode) line(format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "}") {
			g.depth--
		}
		indent := g.depth
		if strings.HasPrefix(line, "case ") {
			indent--
		}
		if line != "" {
			line = strings.Repeat("\t", indent) + line
		}
		g.code.line("%s", line)
		if strings.HasSuffix(line, "{") {
			g.depth++
		}
	}
}

// gofmt writes what declare does as gofmt lays it out: columns, comments, and functions of
// one line.
func (g *goCode) gofmt(declare func(part *goCode)) {
	part := &goCode{names: g.names, top: g.top}
	declare(part)
	text, err := format.Source([]byte(part.b.String()))
	g.b.Write(text)
	g.err = errors.Join(g.err, part.err, err)
}

func (g *goCode) declaration(t *dsl.Type) {
	switch {
	case t.Kind == dsl.Enum:
		g.gofmt(func(part *goCode) { part.enum(t) })
	case t.Kind == dsl.Record:
		g.record(t)
	case t.Member != "":
		g.gofmt(func(part *goCode) { part.wrapper(t) })
	default:
		g.gofmt(func(part *goCode) {
			part.about(t)
			part.line("type %s = %s\n", g.names[t], g.typeOf(t.Elem))
		})
	}
}

// about writes the comment of a type, which begins with its name.
func (g *goCode) about(t *dsl.Type) {
	if len(t.Doc) > 0 {
		g.doc("//", append([]string{g.names[t] + ": " + t.Doc[0]}, t.Doc[1:]...))
	}
}

func (g *goCode) typeOf(t *dsl.Type) string {
	switch t.Kind {
	case dsl.List:
		return "[]" + g.typeOf(t.Elem)
	case dsl.Map:
		return "map[string]" + g.typeOf(t.Elem)
	case dsl.Alias, dsl.Enum, dsl.Record:
		return g.names[t]
	}
	return map[dsl.Kind]string{dsl.String: "string", dsl.Int: "int32", dsl.Long: "int64", dsl.Float: "float64", dsl.Boolean: "bool", dsl.Bytes: "[]byte"}[t.Kind]
}

// builtInName is how support texts call a built-in type.
func builtInName(k dsl.Kind) string {
	return map[dsl.Kind]string{dsl.String: "String", dsl.Int: "Int", dsl.Long: "Long", dsl.Float: "Float", dsl.Boolean: "Boolean", dsl.Bytes: "Bytes"}[k]
}

// reads and writes are the functions for values of a type.
func (g *goCode) reads(t *dsl.Type) string  { return g.function(t, "read", "decode") }
func (g *goCode) writes(t *dsl.Type) string { return g.function(t, "write", "encode") }

func (g *goCode) function(t *dsl.Type, builtIn, own string) string {
	switch t = t.Plain(); t.Kind {
	case dsl.List:
		return builtIn + "List(" + g.function(t.Elem, builtIn, own) + ")"
	case dsl.Map:
		return builtIn + "Map(" + g.function(t.Elem, builtIn, own) + ")"
	case dsl.Alias, dsl.Enum, dsl.Record:
		return own + g.names[t]
	}
	return builtIn + builtInName(t.Kind)
}

func (g *goCode) wrapper(t *dsl.Type) {
	name, plain := g.names[t], g.typeOf(t.Elem)
	g.about(t)
	g.line("type %s %s\n", name, plain)
	g.line("func decode%s(r *reader, v *value) %s { return %s(%s(r, v)) }\n", name, name, name, g.reads(t.Elem))
	g.line("func encode%s(w *writer, t %s) { %s(w, %s(t)) }\n", name, name, g.writes(t.Elem), plain)
}

func (g *goCode) enum(t *dsl.Type) {
	name := g.names[t]
	g.about(t)
	g.line("type %s string\n\n// Values of %s.\nconst (", name, name)
	for _, v := range t.Values {
		g.doc("//", v.Doc)
		g.line("%s %s = %q", g.top.claim(name+goValue(v.Name)), name, v.Name)
	}
	g.line(")\n")
	g.line("func known%s(text string) bool {\nswitch text {\ncase %s:\nreturn true\n}\nreturn false\n}\n", name, list(valueNames(t)))
	g.line("func decode%s(r *reader, v *value) %s { return %s(readEnum(r, v, known%s, %q)) }\n", name, name, name, name, check.ValueList(t))
	g.line("func encode%s(w *writer, t %s) { writeEnum(w, string(t), known%s, %q) }\n", name, name, name, check.ValueList(t))
}

func (g *goCode) record(t *dsl.Type) {
	name, members := g.names[t], memberNames(t, goName, goMembers, map[bool]string{true: "Extra"}[t.Open])
	g.gofmt(func(part *goCode) { part.fields(t, name, members) })
	g.methods(name, t.Name)
	g.readRecord(t, name, members)
	g.writeRecord(t, name, members)
	g.line("func declared%s(name string) bool {", name)
	if len(t.Fields) > 0 {
		g.line("switch name {\ncase %s:\nreturn true\n}", list(fieldNames(t)))
	}
	g.line("return false\n}\n")
}

func (g *goCode) fields(t *dsl.Type, name string, members map[string]string) {
	g.about(t)
	g.line("type %s struct {", name)
	for _, f := range t.Fields {
		g.doc("//", f.Doc)
		typ, omit := g.typeOf(f.Type), ""
		if f.Optional {
			omit = ",omitempty"
			if !absentAsNil(f.Type) {
				typ = "*" + typ
			}
		}
		g.line("%s %s `json:\"%s%s\"`", members[f.Name], typ, f.Name, omit)
	}
	if t.Open {
		g.line("// Extra are the members that are not declared.\nExtra map[string]json.RawMessage `json:\"-\"`")
	}
	g.line("}\n")
}

// absentAsNil reports whether a nil value stands for an absent one.
func absentAsNil(t *dsl.Type) bool {
	t = t.Plain()
	return t.Kind == dsl.List || t.Kind == dsl.Map || t.Kind == dsl.Bytes
}

// methods writes what users of a record call. Reasons name it as it is declared.
func (g *goCode) methods(name, declared string) {
	g.line("// UnmarshalJSON reads a %s. After an error it is as it was.", name)
	g.line("func (t *%s) UnmarshalJSON(text []byte) error {\nread, err := decode(text, %q, decode%s)\nif err == nil {\n*t = read\n}\nreturn err\n}\n", name, declared, name)
	g.line("// MarshalJSON writes a %s that is valid.", name)
	g.gofmt(func(part *goCode) {
		part.line("func (t %s) MarshalJSON() ([]byte, error) { return encode(t, %q, encode%s) }\n", name, declared, name)
	})
	g.line("// Validate returns why a %s cannot be written.", name)
	g.line("func (t %s) Validate() error {\n_, err := t.MarshalJSON()\nreturn err\n}\n", name)
}

func (g *goCode) readRecord(t *dsl.Type, name string, members map[string]string) {
	g.line("func decode%s(r *reader, v *value) (t %s) {\nif !readObject(r, v) {\nreturn t\n}", name, name)
	for _, f := range t.Fields {
		read := "field"
		switch {
		case f.Optional && absentAsNil(f.Type):
			read = "optionalParts"
		case f.Optional:
			read = "optional"
		}
		g.line("t.%s = %s(r, v, %q, %s)", members[f.Name], read, f.Name, g.reads(f.Type))
	}
	if t.Open {
		g.line("t.Extra = others(v, declared%s)", name)
	} else {
		g.line("noOthers(r, v, declared%s)", name)
	}
	g.line("return t\n}\n")
}

func (g *goCode) writeRecord(t *dsl.Type, name string, members map[string]string) {
	g.line("func encode%s(w *writer, t %s) {\nif w.open('{') {", name, name)
	for _, f := range t.Fields {
		member, write := "t."+members[f.Name], g.writes(f.Type)
		switch {
		case f.Optional && absentAsNil(f.Type):
			g.line("if %s != nil {\nwriteField(w, %q, %s, %s)\n}", member, f.Name, member, write)
		case f.Optional:
			g.line("writeOptional(w, %q, %s, %s)", f.Name, member, write)
		default:
			g.line("writeField(w, %q, %s, %s)", f.Name, member, write)
		}
	}
	if t.Open {
		g.line("writeOthers(w, t.Extra, declared%s)", name)
	}
	g.line("}\nw.close('}')\n}\n")
}

// rules writes what the values of each enum expect.
func (g *goCode) rules(all []dsl.Rule) {
	for len(all) > 0 {
		enum := all[0].Enum
		name := g.names[enum]
		g.line("// Expects is the answer that a %s expects, and the fields that the answer has from what\n// it answers. An empty answer means none.", name)
		g.line("func (t %s) Expects() (answer %s, carries []string) {\nswitch t {", name, name)
		for _, r := range all {
			if r.Enum == enum && r.Answer != "" {
				g.line("case %q:\nreturn %q, []string{%s}", r.On, r.Answer, list(r.Carries))
			}
		}
		g.line("}\nreturn \"\", nil\n}\n")
		all = slices.DeleteFunc(slices.Clone(all), func(r dsl.Rule) bool { return r.Enum == enum })
	}
}
