package gen

import (
	_ "embed"
	"fmt"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

//go:embed support/json.py
var pythonSupport string

const pythonImports = `"""Messages as they were declared."""

from __future__ import annotations

import base64 as _base64
import math as _math
import re as _re
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from dataclasses import dataclass as _dataclass
from dataclasses import field as _default
from enum import StrEnum as _StrEnum
from typing import NewType as _NewType
`

// python makes one module, for Python 3.11.
func python(s *dsl.Schema, _ Options) ([]File, error) {
	g := &pyCode{language{
		names: typeNames(s, pythonKeywords, pythonTypes),
		builtIn: map[dsl.Kind]string{
			dsl.String: "str", dsl.Int: "int", dsl.Long: "int", dsl.Float: "float", dsl.Boolean: "bool", dsl.Bytes: "bytes",
		},
		list: "_Sequence[%s]", dictionary: "_Mapping[str, %s]", function: func(name string) string { return name },
		read: "_read_", write: "_write_", to: "_to_", from: "_from_", part: strings.ToLower,
	}}
	g.line("# %s\n", Header)
	g.line("%s", pythonImports)
	g.line("%s\n", strings.TrimSpace(pythonSupport))
	for _, t := range s.Types {
		switch {
		case t.Kind == dsl.Enum:
			g.enum(t)
		case t.Kind == dsl.Record:
			g.record(t)
		case t.Member != "":
			g.wrapper(t)
		}
	}
	g.rules(s)
	return []File{{"messages.py", strings.TrimRight(g.b.String(), "\n") + "\n"}}, nil
}

type pyCode struct{ language }

// remarks are comments, which need no care for quotes.
func (g *pyCode) remarks(indent string, lines []string) { g.doc(indent+"#", lines) }

func (g *pyCode) wrapper(t *dsl.Type) {
	name := g.names[t]
	g.line("")
	g.remarks("", t.Doc)
	g.line("%s = _NewType(%q, %s)\n\n", name, name, g.typeOf(t.Elem))
	g.line("def _to_%s(v, at):\n    return %s\n\n", name, g.call("_read_", t.Elem, "v, at"))
	g.line("def _from_%s(w, t, at):\n    %s\n", name, g.call("_write_", t.Elem, "w, t, at"))
}

func (g *pyCode) enum(t *dsl.Type) {
	name, members := g.names[t], newScope(pythonKeywords, pythonValues)
	g.line("")
	g.remarks("", t.Doc)
	g.line("class %s(_StrEnum):", name)
	for _, v := range t.Values {
		g.remarks("    ", v.Doc)
		g.line("    %s = %q", members.claim(v.Name), v.Name)
	}
	g.line("\n\ndef _to_%s(v, at):\n    return _read_enum(v, at, %s, %q)\n\n", name, name, reasons(t))
	g.line("def _from_%s(w, t, at):\n    _write_enum(w, t, at, %s, %q)\n", name, name, reasons(t))
}

func (g *pyCode) record(t *dsl.Type) {
	name := g.names[t]
	members := memberNames(t, func(name string) string { return name }, pythonKeywords, pythonMembers)
	g.line("")
	g.remarks("", t.Doc)
	g.line("@_dataclass(frozen=True, kw_only=True)\nclass %s:", name)
	for _, f := range t.Fields {
		g.remarks("    ", f.Doc)
		if f.Optional {
			g.line("    %s: %s | None = None", members[f.Name], g.typeOf(f.Type))
		} else {
			g.line("    %s: %s", members[f.Name], g.typeOf(f.Type))
		}
	}
	if t.Open {
		g.line("    # The members that are not declared, each with its text.\n    extra: _Mapping[str, str] = _default(default_factory=lambda: {})")
	} else if len(t.Fields) == 0 {
		g.line("    pass")
	}
	fn := snake(name)
	g.line("\n\ndef decode_%s(text: str | bytes) -> %s:\n    \"\"\"Read a %s, or raise a MessageError.\"\"\"\n    return _to_%s(_parse_text(text), %q)\n\n", fn, name, name, name, t.Name)
	g.line("def encode_%s(t: %s) -> str:\n    \"\"\"Write a %s, or raise a MessageError.\"\"\"\n    return _encode(t, %q, _from_%s)\n\n", fn, name, name, t.Name, name)
	g.line("def validate_%s(t: %s) -> None:\n    \"\"\"Raise a MessageError when a %s cannot be written.\"\"\"\n    encode_%s(t)\n\n", fn, name, name, fn)
	g.readRecord(t, members)
	g.writeRecord(t, members)
}

// declared is a tuple of the names of fields.
func pyDeclared(t *dsl.Type) string {
	if len(t.Fields) == 0 {
		return "()"
	}
	return "(" + list(fieldNames(t)) + ",)"
}

func (g *pyCode) readRecord(t *dsl.Type, members map[string]string) {
	name := g.names[t]
	g.line("def _to_%s(v, at):\n    o = _read_object(v, at)", name)
	var args []string
	for _, f := range t.Fields {
		read := "_field"
		if f.Optional {
			read = "_optional"
		}
		args = append(args, fmt.Sprintf("%s=%s(o, %q, at, %s)", members[f.Name], read, f.Name, g.reads(f.Type)))
	}
	if t.Open {
		args = append(args, fmt.Sprintf("extra=_others(o, %s)", pyDeclared(t)))
	}
	if len(args) == 0 {
		g.line("    t = %s()", name)
	} else {
		g.line("    t = %s(\n        %s,\n    )", name, strings.Join(args, ",\n        "))
	}
	if !t.Open {
		g.line("    _no_others(o, at, %s)", pyDeclared(t))
	}
	g.line("    return t\n\n")
}

func (g *pyCode) writeRecord(t *dsl.Type, members map[string]string) {
	g.line("def _from_%s(w, t, at):\n    w.open(\"{\")", g.names[t])
	for _, f := range t.Fields {
		write := "_write_field"
		if f.Optional {
			write = "_write_optional"
		}
		g.line("    %s(w, %q, t.%s, at, %s)", write, f.Name, members[f.Name], g.writes(f.Type))
	}
	if t.Open {
		g.line("    _write_others(w, t.extra, at, %s)", pyDeclared(t))
	}
	g.line("    w.close(\"}\")\n")
}

func (g *pyCode) rules(s *dsl.Schema) {
	enums, rules := answers(s)
	for _, enum := range enums {
		name := g.names[enum]
		g.line("\ndef expects_%s(t: %s) -> tuple[%s, tuple[str, ...]] | None:", snake(name), name, name)
		g.line("    \"\"\"Return the answer that is expected, and the fields that it has from what it answers.\"\"\"")
		for _, r := range rules[enum] {
			carries := ""
			if len(r.Carries) > 0 {
				carries = list(r.Carries) + ","
			}
			g.line("    if t == %q:\n        return %s(%q), (%s)", r.On, name, r.Answer, carries)
		}
		g.line("    return None\n")
	}
}
