package dsl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSuggestion: what comes from other languages has one fault, with the form that it has here.
func TestSuggestion(t *testing.T) {
	t.Parallel()
	const comment = "a comment begins with // on each of its lines, not with "
	for text, want := range map[string][]string{
		"type A = { a: Timestamp, b: timestamp, c: integer, d: bool }": {
			`1:15 there is no type Timestamp (String)`, `1:29 there is no type timestamp (String)`, `1:43 there is no type integer (Int)`, `1:55 there is no type bool (Boolean)`,
		},
		"type A = { a: double, b: number, c: string, d: array<Int>, e: any }": {
			`1:15 there is no type double (Float)`, `1:26 there is no type number (Float)`, `1:37 there is no type string (String)`, `1:48 there is no type array (List)`, `1:63 there is no type any ()`,
		},
		"type Timestamps = String type A = { a: Timestamp }":   {`1:40 there is no type Timestamp (Timestamps)`},
		"@open @closed type A = { a: Int }":                    {"1:8 the record cannot be open and closed ()"},
		"type A = { @closed @x(1) @open a: { b: Int } }":       {"1:27 the record cannot be open and closed ()"},
		"/* a type A = {\n*/ type B = { c: D }":                {"1:1 " + comment + "/* ()"},
		"/* one */ /* two */\n/* three */ type B = { c: Int }": {"1:1 " + comment + "/* ()"},
		"type A = { a: Int /* é */, b: Int /* b\n b */ }\n$":   {"1:19 " + comment + "/* ()", "1:35 " + comment + "/* ()", `3:1 '$' cannot stand here; a name has the letters a to z and A to Z, digits and _ ()`},
		"/* a type A = {}": {"1:1 " + comment + "/* ()"},
		"# one\n\n  # two\ntype A = { a: Int } # more":   {"1:1 " + comment + "# ()", "4:21 " + comment + "# ()"},
		"@ type A = { a: Int }":                          {"1:1 the name of an annotation stands right behind its @, as in @open ()"},
		"@open @\ntype A = { a: Int }":                   {"1:7 the name of an annotation stands right behind its @, as in @open ()"},
		"message A = { a: Int }":                         {`1:1 "type", "enum", "semantics" or "import" is expected, not "message" (type)`},
		"include \"x.acp\"":                              {`1:1 "type", "enum", "semantics" or "import" is expected, not "include" (import)`},
		"enum A { B }\nsemantics B expect nothing":       {`2:13 "expects" is expected, not "expect" (expects)`},
		"enum A { B }\nsemantics B exepcts nothing":      {`2:13 "expects" is expected, not "exepcts" (expects)`},
		"enum A { B }\nsemantics B returns nothing":      {`2:13 "expects" is expected, not "returns" (expects)`},
		"enum A { B }\nsemantics B expects nothin":       {`2:21 A has no value nothin (nothing)`},
		"type A = { a?: Int, b ?: String?, c: Int? }":    {`1:13 a "?" stands behind the type of what may be absent, and not behind its name ()`, `1:23 a "?" stands behind the type of what may be absent, and not behind its name ()`},
		"@type type A = { @open semantics: { a: Int } }": nil,
	} {
		_, err := load(text)
		var faults Faults
		if err != nil && !errors.As(err, &faults) {
			t.Fatal(err)
		}
		var got []string
		for _, f := range faults {
			got = append(got, fmt.Sprintf("%d:%d %s (%s)", f.Line, f.Col, f.Message, f.Suggestion))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
