package gen

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

//go:embed support/Json.scala
var scalaSupport string

// scala makes one file, for Scala 2.11 and later: the types, and an object with the
// functions for them.
func scala(s *dsl.Schema, opt Options) ([]File, error) {
	g := &scalaCode{language{
		names: typeNames(s, scalaTypes),
		builtIn: map[dsl.Kind]string{
			dsl.String: "String", dsl.Int: "Int", dsl.Long: "Long", dsl.Float: "Double", dsl.Boolean: "Boolean", dsl.Bytes: "Array[Byte]",
		},
		list: "List[%s]", dictionary: "Map[String, %s]", function: func(name string) string { return name },
		read: "read", write: "write", to: "to", from: "from", part: func(name string) string { return name },
	}}
	g.line("// %s\n\npackage %s\n", Header, opt.Package)
	for _, t := range named(s) {
		g.declaration(t)
	}
	g.line("/** Reads, writes and checks messages. */\nobject Messages {")
	for _, t := range named(s) {
		switch t.Kind {
		case dsl.Enum:
			g.enumCode(t)
		case dsl.Record:
			g.recordCode(t)
		default:
			g.wrapperCode(t)
		}
	}
	g.rules(s)
	return []File{{"Messages.scala", g.b.String() + scalaSupport + "}\n"}}, nil
}

type scalaCode struct{ language }

// quotedName is a name of Scala. Keywords stand in backquotes, and so does what ends with an
// underscore: a colon behind it would be a part of the name.
func quotedName(name string) string {
	if slices.Contains(strings.Fields(scalaKeywords), name) || strings.HasSuffix(name, "_") {
		return "`" + name + "`"
	}
	return name
}

func (g *scalaCode) members(t *dsl.Type) map[string]string {
	names := memberNames(t, camel, scalaMembers)
	for field, name := range names {
		names[field] = quotedName(name)
	}
	return names
}

func scalaValues(t *dsl.Type) []string {
	taken, names := newScope(scalaMembers), []string{}
	for _, v := range t.Values {
		names = append(names, quotedName(taken.claim(v.Name)))
	}
	return names
}

// wrapped is how a wrapper calls its value.
func wrapped(t *dsl.Type) string {
	return quotedName(newScope(scalaMembers).claim(camel(t.Member)))
}

func (g *scalaCode) declaration(t *dsl.Type) {
	name := g.names[t]
	g.block("", t.Doc)
	switch t.Kind {
	case dsl.Enum:
		g.line("sealed trait %s\nobject %s {", name, name)
		for i, v := range scalaValues(t) {
			g.block("  ", t.Values[i].Doc)
			g.line("  case object %s extends %s", v, name)
		}
		g.line("}\n")
	case dsl.Record:
		members := g.members(t)
		g.line("case class %s(", name)
		for i, f := range t.Fields {
			typ := g.typeOf(f.Type)
			if f.Optional {
				typ = "Option[" + typ + "] = None"
			}
			g.block("  ", f.Doc)
			g.line("  %s: %s%s", members[f.Name], typ, comma(i, len(t.Fields)))
		}
		g.line(")\n")
	default:
		g.line("case class %s(%s: %s)\n", name, wrapped(t), g.typeOf(t.Elem))
	}
}

func comma(i, of int) string {
	if i < of-1 {
		return ","
	}
	return ""
}

func (g *scalaCode) wrapperCode(t *dsl.Type) {
	name := g.names[t]
	g.line("  private def to%s(v: Value, at: String): %s = %s(%s)", name, name, name, g.call("read", t.Elem, "v, at"))
	g.line("  private def from%s(w: Writer, t: %s, at: String): scala.Unit = %s\n", name, name, g.call("write", t.Elem, "w, t."+wrapped(t)+", at"))
}

// enumCode writes maps: scalac needs minutes to check a match of some hundred cases.
func (g *scalaCode) enumCode(t *dsl.Type) {
	name := g.names[t]
	values, names := quotedName("values"+name), quotedName("names"+name)
	g.line("  private lazy val %s: Map[String, %s] = Map(", values, name)
	for i, v := range scalaValues(t) {
		g.line("    (%q, %s.%s)%s", t.Values[i].Name, name, v, comma(i, len(t.Values)))
	}
	g.line("  )\n  private lazy val %s: Map[%s, String] = %s.map(_.swap)\n", names, name, values)
	g.line("  private def to%s(v: Value, at: String): %s = v match {", name, name)
	g.line("    case Text(text) if %s.contains(text) => %s(text)\n    case _ => fail(at, %q)\n  }\n", values, values, "is none of "+reasons(t))
	g.line("  private def from%s(w: Writer, t: %s, at: String): scala.Unit = w.out.append(quoted(%s(t)))\n", name, name, names)
}

func (g *scalaCode) recordCode(t *dsl.Type) {
	name, members := g.names[t], g.members(t)
	g.line("  /** Reads a %s, or returns why it cannot. */\n  def decode%s(text: String): scala.Either[String, %s] = attempt(to%s(parseText(text), %q))", name, name, name, name, t.Name)
	g.line("  def decode%s(text: scala.Array[scala.Byte]): scala.Either[String, %s] = attempt(to%s(parseText(utf8(text)), %q))\n", name, name, name, t.Name)
	g.line("  /** Writes a %s, or returns why it cannot. */\n  def encode%s(t: %s): scala.Either[String, String] = encode[%s](t, %q, from%s)\n", name, name, name, name, t.Name, name)
	g.line("  /** Why a %s cannot be written. */\n  def validate%s(t: %s): scala.Option[String] = encode%s(t).left.toOption\n", name, name, name, name)
	if t.Open {
		g.extended(t, members)
	}
	g.readRecord(t)
	g.writeRecord(t, members)
	cases := "false"
	if len(t.Fields) > 0 {
		cases = "name match {\n    case " + strings.ReplaceAll(list(fieldNames(t)), ", ", " | ") + " => true\n    case _ => false\n  }"
	}
	g.line("  private def declared%s(name: String): Boolean = %s\n", name, cases)
}

// extended writes a class that has the members that are not declared: the declared class
// has only what is declared.
func (g *scalaCode) extended(t *dsl.Type, members map[string]string) {
	name := g.names[t]
	var parts []string
	for _, f := range t.Fields {
		parts = append(parts, "original."+members[f.Name])
	}
	g.line("  private class Open_%s(original: %s, val undeclared: Map[String, String]) extends %s(%s)\n", name, name, name, strings.Join(parts, ", "))
	g.line("  /** The members that are not declared, each with its text. A copy has none. */\n  def extra(t: %s): Map[String, String] = t match {\n    case o: Open_%s => o.undeclared\n    case _ => Map.empty\n  }\n", name, name)
	g.line("  def withExtra(t: %s, extra: Map[String, String]): %s = new Open_%s(t, extra)\n", name, name, name)
}

func (g *scalaCode) readRecord(t *dsl.Type) {
	name := g.names[t]
	g.line("  private def to%s(v: Value, at: String): %s = {\n    val o = readObject(v, at)", name, name)
	var args []string
	for _, f := range t.Fields {
		read := "field"
		if f.Optional {
			read = "optional"
		}
		args = append(args, fmt.Sprintf("%s[%s](o, %q, at, %s)", read, g.typeOf(f.Type), f.Name, g.reads(f.Type)))
	}
	g.line("    val t = %s(%s)", name, strings.Join(args, ",\n      "))
	if t.Open {
		g.line("    withExtra(t, others(o, declared%s))\n  }\n", name)
	} else {
		g.line("    noOthers(o, at, declared%s)\n    t\n  }\n", name)
	}
}

func (g *scalaCode) writeRecord(t *dsl.Type, members map[string]string) {
	name := g.names[t]
	g.line("  private def from%s(w: Writer, t: %s, at: String): scala.Unit = {\n    w.open('{')", name, name)
	for _, f := range t.Fields {
		write := "writeField"
		if f.Optional {
			write = "writeOptional"
		}
		g.line("    %s[%s](w, %q, t.%s, at, %s)", write, g.typeOf(f.Type), f.Name, members[f.Name], g.writes(f.Type))
	}
	if t.Open {
		g.line("    writeOthers(w, extra(t), at, declared%s)", name)
	}
	g.line("    w.close('}')\n  }\n")
}

func (g *scalaCode) rules(s *dsl.Schema) {
	enums, rules := answers(s)
	for _, enum := range enums {
		name, values := g.names[enum], scalaValues(enum)
		value := func(declared string) string {
			return name + "." + values[slices.Index(valueNames(enum), declared)]
		}
		expected := quotedName("expected" + name)
		g.line("  private lazy val %s: Map[%s, (%s, List[String])] = Map(", expected, name, name)
		for i, r := range rules[enum] {
			g.line("    (%s, (%s, List(%s)))%s", value(r.On), value(r.Answer), list(r.Carries), comma(i, len(rules[enum])))
		}
		g.line("  )\n  /** The answer that a %s expects, and the fields that it has from what it answers. */\n  def expects(t: %s): scala.Option[(%s, List[String])] = %s.get(t)\n", name, name, name, expected)
	}
}
