package gen

import (
	_ "embed"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

//go:embed support/json.ts
var typescriptSupport string

// typescript makes one module.
func typescript(s *dsl.Schema, _ Options) ([]File, error) {
	g := &tsCode{language{
		names: typeNames(s, typescriptTypes),
		builtIn: map[dsl.Kind]string{
			dsl.String: "string", dsl.Int: "number", dsl.Long: "bigint", dsl.Float: "number", dsl.Boolean: "boolean", dsl.Bytes: "Uint8Array",
		},
		list: "ReadonlyArray<%s>", dictionary: "ReadonlyMap<string, %s>", function: func(name string) string { return name },
		read: "read", write: "write", to: "to", from: "from", part: func(name string) string { return name },
	}}
	g.line("// %s\n", Header)
	for _, t := range s.Types {
		switch {
		case t.Kind == dsl.Enum:
			g.enum(t)
		case t.Kind == dsl.Record:
			g.record(t)
		case t.Member != "":
			g.wrapper(t)
		default:
			g.block("", t.Doc)
			g.line("export type %s = %s;\n", g.names[t], g.typeOf(t.Elem))
		}
	}
	g.rules(s)
	return []File{{"messages.ts", g.b.String() + typescriptSupport}}, nil
}

type tsCode struct{ language }

func (g *tsCode) wrapper(t *dsl.Type) {
	name, plain := g.names[t], g.typeOf(t.Elem)
	g.block("", t.Doc)
	g.line("export type %s = %s & { readonly brand: %q };\n", name, plain, name)
	g.line("export function %s(value: %s): %s {\n  return value as %s;\n}\n", name, plain, name, name)
	g.line("function to%s(v: Value, at: string): %s {\n  return %s as %s;\n}\n", name, name, g.call("read", t.Elem, "v, at"), name)
	g.line("function from%s(w: Writer, t: %s, at: string): void {\n  %s;\n}\n", name, name, g.call("write", t.Elem, "w, t, at"))
}

func (g *tsCode) enum(t *dsl.Type) {
	name := g.names[t]
	g.block("", t.Doc)
	g.line("export type %s =", name)
	for i, v := range t.Values {
		g.block("  ", v.Doc)
		end := ""
		if i == len(t.Values)-1 {
			end = ";\n"
		}
		g.line("  | %q%s", v.Name, end)
	}
	g.line("function known%s(text: string): boolean {\n  return [%s].includes(text);\n}\n", name, list(valueNames(t)))
	g.line("function to%s(v: Value, at: string): %s {\n  return readEnum(v, at, known%s, %q);\n}\n", name, name, name, reasons(t))
	g.line("function from%s(w: Writer, t: %s, at: string): void {\n  writeEnum(w, t, at, known%s, %q);\n}\n", name, name, name, reasons(t))
}

func (g *tsCode) record(t *dsl.Type) {
	name, members := g.names[t], memberNames(t, camel, typescriptMembers)
	g.block("", t.Doc)
	g.line("export interface %s {", name)
	for _, f := range t.Fields {
		g.block("  ", f.Doc)
		if f.Optional {
			g.line("  readonly %s?: %s | undefined;", members[f.Name], g.typeOf(f.Type))
		} else {
			g.line("  readonly %s: %s;", members[f.Name], g.typeOf(f.Type))
		}
	}
	if t.Open {
		g.line("  /** The members that are not declared, each with its text. */\n  readonly extra?: ReadonlyMap<string, string> | undefined;")
	}
	g.line("}\n")
	g.line("/** Reads a %s, or throws a MessageError. */\nexport function decode%s(text: string | Uint8Array): %s {\n  return to%s(parseText(text), %q);\n}\n", name, name, name, name, t.Name)
	g.line("/** Writes a %s, or throws a MessageError. */\nexport function encode%s(t: %s): string {\n  return encode(t, %q, from%s);\n}\n", name, name, name, t.Name, name)
	g.line("/** Why a %s cannot be written, undefined when it can. */\nexport function validate%s(t: %s): string | undefined {", name, name, name)
	g.line("  try {\n    encode%s(t);\n    return undefined;\n  } catch (e) {\n    if (e instanceof MessageError) {\n      return e.message;\n    }\n    throw e;\n  }\n}\n", name)
	g.readRecord(t, members)
	g.writeRecord(t, members)
	g.line("function declared%s(name: string): boolean {\n  const names: readonly string[] = [%s];\n  return names.includes(name);\n}\n", name, list(fieldNames(t)))
}

func (g *tsCode) readRecord(t *dsl.Type, members map[string]string) {
	name := g.names[t]
	g.line("function to%s(v: Value, at: string): %s {\n  const o = readObject(v, at);\n  const t: %s = {", name, name, name)
	for _, f := range t.Fields {
		read := "field"
		if f.Optional {
			read = "optional"
		}
		g.line("    %s: %s(o, %q, at, %s),", members[f.Name], read, f.Name, g.reads(f.Type))
	}
	if t.Open {
		g.line("    extra: others(o, declared%s),\n  };\n  return t;\n}\n", name)
	} else {
		g.line("  };\n  noOthers(o, at, declared%s);\n  return t;\n}\n", name)
	}
}

func (g *tsCode) writeRecord(t *dsl.Type, members map[string]string) {
	name, unused := g.names[t], ""
	if len(t.Fields) == 0 && !t.Open {
		unused = "_"
	}
	g.line("function from%s(w: Writer, %st: %s, %sat: string): void {\n  w.open(\"{\");", name, unused, name, unused)
	for _, f := range t.Fields {
		write := "writeField"
		if f.Optional {
			write = "writeOptional"
		}
		g.line("  %s(w, %q, t.%s, at, %s);", write, f.Name, members[f.Name], g.writes(f.Type))
	}
	if t.Open {
		g.line("  writeOthers(w, t.extra, at, declared%s);", name)
	}
	g.line("  w.close(\"}\");\n}\n")
}

func (g *tsCode) rules(s *dsl.Schema) {
	enums, rules := answers(s)
	for _, enum := range enums {
		name := g.names[enum]
		g.line("/** The answer that a %s expects, and the fields that it has from what it answers. */", name)
		g.line("export function expects%s(t: %s): { answer: %s; carries: readonly string[] } | undefined {\n  switch (t) {", name, name, name)
		for _, r := range rules[enum] {
			g.line("    case %q:\n      return { answer: %q, carries: [%s] };", r.On, r.Answer, strings.TrimSpace(list(r.Carries)))
		}
		g.line("  }\n  return undefined;\n}\n")
	}
}
