package gen

import (
	_ "embed"
	"fmt"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

//go:embed support/Json.java
var javaSupport string

// java makes one class, for Java 17, with the types in it.
func java(s *dsl.Schema, opt Options) ([]File, error) {
	g := &javaCode{language{
		names: typeNames(s, javaTypes),
		builtIn: map[dsl.Kind]string{
			dsl.String: "String", dsl.Int: "Integer", dsl.Long: "Long", dsl.Float: "Double", dsl.Boolean: "Boolean", dsl.Bytes: "byte[]",
		},
		list: "java.util.List<%s>", dictionary: "java.util.Map<String, %s>", function: func(name string) string { return "Messages::" + name },
		read: "read", write: "write", to: "to", from: "from", part: func(name string) string { return name },
	}}
	g.line("// %s\n\npackage %s;\n\n/** Messages as they were declared. A member that is optional may be null. */\npublic final class Messages {\n    private Messages() {}\n", Header, opt.Package)
	for _, t := range named(s) {
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
	return []File{{"Messages.java", g.b.String() + javaSupport + "}\n"}}, nil
}

type javaCode struct{ language }

// memberType is the type of a member: what cannot be absent need not be an object.
func (g *javaCode) memberType(t *dsl.Type, optional bool) string {
	primitive := map[dsl.Kind]string{dsl.Int: "int", dsl.Long: "long", dsl.Float: "double", dsl.Boolean: "boolean"}[t.Plain().Kind]
	if primitive != "" && !optional {
		return primitive
	}
	return g.typeOf(t)
}

func (g *javaCode) wrapper(t *dsl.Type) {
	name, member := g.names[t], newScope(javaKeywords, javaMembers).claim(camel(t.Member))
	g.block("    ", t.Doc)
	g.line("    public record %s(%s %s) {}\n", name, g.memberType(t.Elem, false), member)
	g.line("    private static %s to%s(Object v, String at) {\n        return new %s(%s);\n    }\n", name, name, name, g.call("read", t.Elem, "v, at"))
	g.line("    private static void from%s(Writer w, %s t, String at) {\n        %s;\n    }\n", name, name, g.call("write", t.Elem, "w, t."+member+"(), at"))
}

func (g *javaCode) enum(t *dsl.Type) {
	name, members := g.names[t], newScope(javaKeywords, "wire")
	g.block("    ", t.Doc)
	g.line("    public enum %s {", name)
	for i, v := range t.Values {
		g.block("        ", v.Doc)
		g.line("        %s(%q)%s", members.claim(v.Name), v.Name, map[bool]string{true: ";", false: ","}[i == len(t.Values)-1])
	}
	g.line("\n        private final String wire;\n\n        %s(String wire) {\n            this.wire = wire;\n        }\n    }\n", name)
	g.line("    private static %s to%s(Object v, String at) {\n        for (%s t : %s.values()) {\n            if (t.wire.equals(v)) {\n                return t;\n            }\n        }", name, name, name, name)
	g.line("        throw failed(at, %q);\n    }\n", "is none of "+reasons(t))
	g.line("    private static void from%s(Writer w, %s t, String at) {\n        writeString(w, t.wire, at);\n    }\n", name, name)
}

func (g *javaCode) record(t *dsl.Type) {
	name, members := g.names[t], memberNames(t, camel, javaKeywords, javaMembers)
	var parts []string
	for _, f := range t.Fields {
		parts = append(parts, g.memberType(f.Type, f.Optional)+" "+members[f.Name])
	}
	if t.Open {
		parts = append(parts, "java.util.Map<String, String> extra")
	}
	var about []string
	for _, f := range t.Fields {
		for i, l := range f.Doc {
			if i == 0 {
				l = "@param " + members[f.Name] + " " + l
			}
			about = append(about, l)
		}
	}
	if t.Open {
		about = append(about, "@param extra the members that are not declared, each with its text; may be null")
	}
	g.block("    ", append(append([]string{}, t.Doc...), about...))
	g.line("    public record %s(%s) {", name, strings.Join(parts, ", "))
	g.line("        /** Reads a %s, or throws a MessageError. */\n        public static %s decode(String text) {\n            return Messages.to%s(Messages.parseText(text), %q);\n        }\n", name, name, name, t.Name)
	g.line("        /** Reads a %s from UTF-8, or throws a MessageError. */\n        public static %s decode(byte[] text) {\n            return decode(Messages.utf8(text));\n        }\n", name, name)
	g.line("        /** Writes it, or throws a MessageError. */\n        public String encode() {\n            return Messages.encode(this, %q, Messages::from%s);\n        }\n", t.Name, name)
	g.line("        /** Throws a MessageError when it cannot be written. */\n        public void validate() {\n            encode();\n        }\n    }\n")
	g.readRecord(t)
	g.writeRecord(t, members)
	g.line("    private static boolean declared%s(String name) {", name)
	if len(t.Fields) == 0 {
		g.line("        return false;\n    }\n")
	} else {
		g.line("        return switch (name) {\n            case %s -> true;\n            default -> false;\n        };\n    }\n", list(fieldNames(t)))
	}
}

func (g *javaCode) readRecord(t *dsl.Type) {
	name := g.names[t]
	g.line("    private static %s to%s(Object v, String at) {\n        java.util.Map<String, Object> o = readObject(v, at);", name, name)
	var args []string
	for _, f := range t.Fields {
		read := "field"
		if f.Optional {
			read = "optional"
		}
		args = append(args, fmt.Sprintf("%s(o, %q, at, %s)", read, f.Name, g.reads(f.Type)))
	}
	if t.Open {
		args = append(args, fmt.Sprintf("others(o, Messages::declared%s)", name))
	}
	g.line("        %s t = new %s(%s);", name, name, strings.Join(args, ",\n            "))
	if !t.Open {
		g.line("        noOthers(o, at, Messages::declared%s);", name)
	}
	g.line("        return t;\n    }\n")
}

func (g *javaCode) writeRecord(t *dsl.Type, members map[string]string) {
	name := g.names[t]
	g.line("    private static void from%s(Writer w, %s t, String at) {\n        w.open('{');", name, name)
	for _, f := range t.Fields {
		write := "writeField"
		if f.Optional {
			write = "writeOptional"
		}
		g.line("        %s(w, %q, t.%s(), at, %s);", write, f.Name, members[f.Name], g.writes(f.Type))
	}
	if t.Open {
		g.line("        writeOthers(w, t.extra(), at, Messages::declared%s);", name)
	}
	g.line("        w.close('}');\n    }\n")
}

func (g *javaCode) rules(s *dsl.Schema) {
	enums, rules := answers(s)
	if len(enums) > 0 {
		g.line("    /** The answer that is expected, and the fields that it has from what it answers. */\n    public record Expected(String answer, java.util.List<String> carries) {}\n")
	}
	for _, enum := range enums {
		name := g.names[enum]
		g.line("    /** What a %s expects, null for nothing. */\n    public static Expected expects(%s t) {\n        return switch (t.wire) {", name, name)
		for _, r := range rules[enum] {
			g.line("            case %q -> new Expected(%q, java.util.List.of(%s));", r.On, r.Answer, list(r.Carries))
		}
		g.line("            default -> null;\n        };\n    }\n")
	}
}
