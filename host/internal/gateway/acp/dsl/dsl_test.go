package dsl

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what is expected in testdata anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(readFile(t, file), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is meant, run with -update:\n%s", file, diff)
	}
}

func readFile(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// load resolves one text.
func load(text string) (*Schema, error) {
	return Load("test.acp", func(name string) (string, error) {
		if name != "test.acp" {
			return "", os.ErrNotExist
		}
		return text, nil
	})
}

// A-060, V-A30: the declarations of the document are read as they stand, comments
// included.
func TestDocument(t *testing.T) {
	t.Parallel()
	s, err := load(readFile(t, "testdata/document.acp"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, typ := range s.Types {
		names = append(names, typ.Name+":"+typ.Member)
	}
	if want := []string{"AgentID:id", "MessageID:id", "Timestamp:time", "Content:", "MessageType:", "Header:", "Message:"}; !cmp.Equal(names, want) {
		t.Errorf("types %v, want %v", names, want)
	}
	var fields []string
	for _, f := range s.Find("Header").Fields {
		fields = append(fields, fmt.Sprint(f.Name, " ", f.Type.Name, f.Type.Kind, " ", f.Optional))
	}
	want := []string{
		"version 0 false", "sender AgentID8 false", "receiver AgentID8 false", "type MessageType9 false", "id MessageID8 false",
		"timestamp Timestamp8 false", "content_type 0 false", "reply_to MessageID8 true", "conversation_id 0 true",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}
	if got := s.Find("Message").Fields[1].Doc; !cmp.Equal(got, []string{"The actual payload"}) {
		t.Errorf("the comment of body is %q", got)
	}
	if !s.Find("Header").Open || s.Find("Message").Open || s.Root().Name != "Message" {
		t.Error("header takes further fields, Message is closed and what messages are")
	}
}

// the file that the gateway is generated from has the document's declarations,
// comments included, and says what each type expects.
func TestSpecification(t *testing.T) {
	t.Parallel()
	text := readFile(t, "../../../../../spec/gateways/acp/acp-1.0.acp")
	for line := range strings.Lines(readFile(t, "testdata/document.acp")) {
		if !strings.Contains(text, strings.TrimSpace(line)) {
			t.Errorf("the specification has not %q", strings.TrimSpace(line))
		}
	}
	f, err := Parse("acp-1.0.acp", text)
	if err != nil || Format(f) != text {
		t.Errorf("the specification is not in the one form: %v", err)
	}
	s, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, r := range s.Rules {
		rules = append(rules, fmt.Sprint(r.On, ">", r.Answer, r.Carries))
	}
	both := "[reply_to conversation_id]"
	want := []string{"REQUEST>RESPONSE" + both, "RESPONSE>[]", "INFORM>[]", "QUERY>INFORM" + both, "ACKNOWLEDGE>[]", "ERROR>[]"}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error(diff)
	}
}

// A-064, V-A32, V-A33: several faults a run, each with its place, a caret and what was
// probably meant.
func TestFaults(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/faults/*.acp")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		_, err := Load(filepath.Base(file), func(name string) (string, error) { return readFile(t, filepath.Join("testdata/faults", name)), nil })
		var faults Faults
		if !errors.As(err, &faults) || len(faults) < 2 {
			t.Errorf("%s: %v", file, err)
			continue
		}
		golden(t, strings.TrimSuffix(file, ".acp")+".txt", err.Error()+"\n")
	}
}

// A file in another language has one fault, and what it is.
func TestOtherLanguage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		readFile(t, "../../../../../README.md"), readFile(t, "dsl_test.go"), "syntax = \"proto3\";\nmessage A {\n  string b = 1;\n}\n", "message A {\n  string b = 1;\n  string c = 2;\n}\n",
	} {
		_, err := load(text)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line != 1 || !strings.Contains(faults[0].Message, "is it a .acp file?") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for _, text := range []string{"tpye A = String\n", "# x\n# x\n# x\nenum E {\n", "# x\n# x\n# x\ntype A = { b: Int\n"} {
		if _, err := load(text); err == nil || strings.Contains(err.Error(), "is it a .acp file?") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOtherForm: a swarm.toml or a message in the place of declarations has one fault, at its first
// line, and what it is.
func TestOtherForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"schema = 1\n\n[swarm]\nname = \"x\"\n":    "test.acp:1:1: this is TOML",
		"# ours\n\n  [swarm] # it\nname = \"x\"\n": "test.acp:3:1: this is TOML",
		"[[auth.keys]]\r\nid = 'x'\r\n":            "test.acp:1:1: this is TOML",
		"\ufeffname = 'x'\n":                       "test.acp:1:1: this is TOML",
		"on = true\n":                              "test.acp:1:1: this is TOML",
		"{\"header\": {}}":                         "test.acp:1:1: this is JSON",
		"\n[\n1]":                                  "test.acp:2:1: this is JSON",
		"Message = {\n  a: String\n}\n":            `"type", "enum", "semantics" or "import" is expected, not "Message"`,
		"AgentID = String\n":                       `"type", "enum", "semantics" or "import" is expected, not "AgentID"`,
		"schema = 1\ntype A = String\n":            `"type", "enum", "semantics" or "import" is expected, not "schema"`,
	} {
		_, err := load(text)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestCommentUTF8: a comment that is not UTF-8 is a fault at its place: generated code would have
// another one.
func TestCommentUTF8(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"type A = String // caf\xe9\n":                      "test.acp:1:23: this is not UTF-8",
		"// \ufffd is a character\n//\xff\ntype A = String": "test.acp:2:3: this is not UTF-8",
		"// é \ufffd\xc3\ntype A = String":                  "test.acp:1:7: this is not UTF-8",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := load("// é \ufffd\ntype A = String // \ufffd"); err != nil {
		t.Error(err)
	}
}

// A-062, V-A31: commas may end a list, and comments stand behind the last value.
func TestTrailingCommas(t *testing.T) {
	t.Parallel()
	s, err := load("enum E { A, B, } // of E\ntype R = { a: E, b: { c: Int, }, // of b\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Find("E").Values) != 2 || !cmp.Equal(s.Find("B").Doc, []string{"of b"}) || !cmp.Equal(s.Find("E").Doc, []string{"of E"}) {
		t.Errorf("%+v", s.Types)
	}
}

// Records that are written where they are used get the field's name, or the record's
// and the field's.
func TestNamesOfInnerRecords(t *testing.T) {
	t.Parallel()
	s, err := load("type Header = { a: Int }\ntype M = { header: { b: Int }, parts: List<{ part: { c: Int } }> }")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, typ := range s.Types {
		got = append(got, typ.Name+" "+typ.Path)
	}
	if want := []string{"Header Header", "MHeader M.header", "Part M.parts.part", "Parts M.parts", "M M"}; !cmp.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := load("type A = { b: { x: Int } }\ntype B = { x: Int }\ntype AB = { x: Int }"); err == nil || !strings.Contains(err.Error(), "the record here needs a name, and B and AB are taken") {
		t.Error(err)
	}
}

// files beside the first one are imported once each; none leads out of its
// directory or to itself.
func TestImports(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"main.acp":      "import \"sub/a.acp\"\nimport \"b.acp\"\ntype M = { a: A, b: B }",
		"sub/a.acp":     "import \"c.acp\"\ntype A = { c: C }",
		"sub/c.acp":     "type C = String",
		"b.acp":         "import \"sub/c.acp\"\ntype B = { c: C }",
		"circle.acp":    "import \"circle2.acp\"",
		"circle2.acp":   "import \"circle.acp\"",
		"missing.acp":   "import \"none.acp\"",
		"out.acp":       "import \"../b.acp\"\nimport \"/b.acp\"\nimport \"b.toml\"",
		"faulty.acp":    "import \"faulty2.acp\"\ntype X = Int",
		"faulty2.acp":   "\ntype = Int",
		"redeclare.acp": "import \"b.acp\"\ntype B = { x: Int }",
	}
	read := func(name string) (string, error) {
		if text, ok := files[name]; ok {
			return text, nil
		}
		return "", os.ErrNotExist
	}
	s, err := Load("main.acp", read)
	if err != nil || s.Name != "main" || len(s.Types) != 4 || s.Types[0].Name != "C" {
		t.Errorf("%+v, %v", s, err)
	}
	for file, want := range map[string]string{
		"circle.acp": "circle2.acp:1:8: the file imports itself", "missing.acp": "missing.acp:1:8: the file cannot be read: file does not exist",
		"out.acp": "out.acp:3:8: an import is a .acp file beside", "faulty.acp": "faulty2.acp:2:6: the name of the type is expected", "redeclare.acp": "redeclare.acp:2:6: the name B is there already, in b.acp: an import cannot be extended, so begin with a copy of it",
	} {
		if _, err := Load(file, read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	if _, err := Load("none.acp", read); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What is declared is told in a line each, as it would be written.
func TestDeclared(t *testing.T) {
	t.Parallel()
	s, err := load("enum K { A, B, C }\ntype ID = String\ntype M = { k: K, ids: List<Map<String, ID>>?, in: { b: Bytes } }\nsemantics A expects B { k }\nsemantics B expects nothing")
	if err != nil {
		t.Fatal(err)
	}
	want := []Declared{
		{"K.A", "expects B { k }"}, {"K.B", "expects nothing"}, {"K.C", "value"}, {"ID", "String"}, {"In.b", "Bytes"},
		{"M.k", "K"}, {"M.ids", "List<Map<String, ID>>?"}, {"M.in", "In"},
	}
	if diff := cmp.Diff(want, s.Declared()); diff != "" {
		t.Error(diff)
	}
}

// any annotation is kept, and one without an effect is a warning: its name is
// mistyped, or it stands where it means nothing.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	s, err := load(`@closd @since("1.2") type Header = { a: Int }
@closed type Name = String
@plain @open enum E { A }
@plain type M = {
  @requird a: Int, @opne b: { x: Int }, @open c: List<{ x: Int }>, @closed d: Name
}
@field("x") type N = M
@plain @field("x") type Id = String
@open semantics A expects nothing
`)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Warnings.Error()
	golden(t, "testdata/annotations.txt", got+"\n")
	if s.Find("Id").Member != "" || !s.Find("Header").Open || !s.Find("C").Open {
		t.Error("annotations with an effect have none beside others")
	}
	s, err = load(many(30, "@a%[1]d type T%[1]d = {}\n"))
	if err != nil || len(s.Warnings) != maxFaults {
		t.Errorf("%d warnings, %v", len(s.Warnings), err)
	}
}

// @field has one argument, which is a name.
func TestFieldAnnotation(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "@field has one argument", "()": "@field has one argument", `("a", "b")`: "@field has one argument",
		`("")`: `not ""`, `("1a")`: `not "1a"`, `("a b")`: `not "a b"`, `("_a")`: `not "_a"`, "(5)": `not "5"`,
	} {
		if _, err := load("@field" + args + " type A = String"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	s, err := load("@field(amount) type A = Int\n@field(\"of_it\") type B = Int")
	if err != nil || s.Find("A").Member != "amount" || s.Find("B").Member != "of_it" {
		t.Error(err)
	}
}

// remarks name what is unusual, with its place; the document has one, and each is
// about a comment.
func TestRemarks(t *testing.T) {
	t.Parallel()
	remarks := func(text string) (all []string) {
		s, err := load(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Remarks() {
			all = append(all, fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Message))
		}
		return all
	}
	got := remarks("// an id\ntype item_id = String\nenum Kind { // kinds\n  good, // one\n  BAD\n}\ntype M = {\n  Kind: Kind, // its kind\n  in: { a: Int }\n}")
	want := []string{
		"2:6 the name of a type is usually written like ItemId", "3:6 Kind has no comment", "3:6 the value good is usually written in capitals",
		"3:6 the value BAD has no comment", "9:9 a has no comment", "7:6 M has no comment", "8:3 the name of a field is usually written in small letters",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, r := range remarks(readFile(t, "testdata/document.acp")) {
		if !strings.Contains(r, "has no comment") {
			t.Errorf("of the document: %s", r)
		}
	}
	if n := len(remarks("type M = {" + many(100, "A%[1]d: Int,") + "}")); n != maxFaults {
		t.Errorf("%d remarks", n)
	}
}

// TestCost: a file of 1 MiB takes less than 64 MiB, all that was ever allocated for it
// counted, and a hostile one less than 4 MiB: the memory is most of its time.
func TestCost(t *testing.T) {
	cost := func(text string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = load(text)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if got := cost(mebibyte()); got > 64<<20 {
		t.Errorf("1 MiB of declarations took %d MiB", got>>20)
	}
	for i, text := range comments() {
		if got := cost(text); got > 64<<20 {
			t.Errorf("comments %d took %d MiB", i, got>>20)
		}
	}
	for name, h := range hostile() {
		if got := cost(h.text); got > 4<<20 {
			t.Errorf("%s took %d MiB", name, got>>20)
		}
	}
}
