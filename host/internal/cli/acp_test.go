package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// acpShell runs commands in a directory of their own, with files in it.
func acpShell(t *testing.T, files map[string]string) (dir string, run func(vars map[string]string, stdin string, args ...string) (int, string, string)) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(vars map[string]string, stdin string, args ...string) (int, string, string) {
		s := newShell(vars, args...)
		s.Stdin = strings.NewReader(stdin)
		code := Main(t.Context(), s.Env)
		return code, strings.ReplaceAll(s.stdout.String(), dir, "DIR"), strings.ReplaceAll(s.stderr.String(), dir, "DIR")
	}
}

const goodAcp = "import \"sub/base.acp\"\ntype Message = { id: ID, n: Int? }\ntype Other = { x: Kind }\n"

var acpFiles = map[string]string{
	"good.acp": goodAcp, "sub/base.acp": "type ID = String\nenum Kind { A, B }\n",
	"bad.acp": "import \"sub/bad.acp\"\ntype A = Strin\n", "sub/bad.acp": "type B = { c: D\n}\nenum E {\n",
	"fits.json": `{"id":"1"}`, "other.json": `{"x":"C"}`, "empty.acp": "type A = String\n", "hollow.acp": "type A = {}\n", "blank.acp": "// nothing yet\n",
	"closd.acp": "@closd type A = { b: Int }\n",
	"many.acp":  strings.Repeat("type A = {}\n", 16), "own/read.go": "package mine\n",
	"broken.acp.lock": "what\n", "broken.acp": "type A = { b: Int }\n",
}

// check and compile tell faults with their places, exit with 3, 4 and 8,
// and give the same as data.
func TestAcpCheck(t *testing.T) {
	t.Parallel()
	dir, run := acpShell(t, acpFiles)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		args           []string
		stdin          string
		code           int
		stdout, stderr string
	}{
		{[]string{"check", at("good.acp")}, "", 0, "DIR/good.acp is good: 4 types, a message is a Message\n", ""},
		{[]string{"check", at("empty.acp")}, "", 0, "DIR/empty.acp is good: 1 type\n", ""},
		{[]string{"check", at("hollow.acp")}, "", 0, "is good", "DIR/hollow.acp:1:6: warning: the record has no fields"},
		{[]string{"check", at("closd.acp")}, "", 0, "is good", "DIR/closd.acp:1:2: warning: @closd has no effect; those that have one are @open, @closed, @plain, @field (did you mean \"closed\"?)"},
		{[]string{"compile", at("closd.acp"), "--lang", "go", "-o", at("out")}, "", 0, "messages.go", "DIR/closd.acp:1:2: warning: @closd has no effect"},
		{[]string{"check", at("good.acp"), at("fits.json"), "-"}, `{"id":"1","n":"x"}`, 8, "DIR/fits.json fits\n", "-: Message.n: is no whole number of 32 bits\n"},
		{[]string{"check", at("good.acp"), "--type", "Other", at("other.json")}, "", 8, "", "DIR/other.json: Other.x: is none of A, B\n"},
		{[]string{"check", at("good.acp"), "--type", "Kin"}, "", 4, "", "DIR/good.acp declares no record Kin"},
		{[]string{"check", at("good.acp"), at("none.json")}, "", 4, "", "none.json"},
		{[]string{"check", at("empty.acp"), at("fits.json")}, "", 3, "", "declares no record, so"},
		{[]string{"check", at("none.acp")}, "", 4, "", "there is no file DIR/none.acp"},
		{[]string{"check", at("bad.acp")}, "", 3, "", "DIR/sub/bad.acp:4:1: a value is expected, not the end of the file"},
		{[]string{"check"}, "", 2, "", "acp check needs the FILE of declarations"},
		{[]string{"compile", at("good.acp")}, "", 2, "", "acp compile needs --lang"},
		{[]string{"compile", at("good.acp"), "--lang", "cobol"}, "", 2, "", `no language is called "cobol"`},
		{[]string{"compile", at("bad.acp"), "--lang", "go"}, "", 3, "", "DIR/sub/bad.acp:4:1"},
		{[]string{"compile", at("broken.acp"), "--lang", "proto", "-o", dir}, "", 3, "", "DIR/broken.acp.lock:1: this line is not"},
		{[]string{"compile", at("good.acp"), "--language", "go"}, "", 2, "", "unknown flag --language for \"skep acp compile\"\n      did you mean --lang?"},
		{[]string{"compile", at("good.acp"), "--pack", "go"}, "", 2, "", "did you mean --package?"},
		{[]string{"compile", at("good.acp"), "--target", "go"}, "", 2, "", "unknown flag --target for \"skep acp compile\"\n      `skep"},
		{[]string{"compile", at("good.acp"), "--lang", "typescipt"}, "", 2, "", "did you mean typescript?"},
		{[]string{"compile", at("good.acp"), "--lang", "go", "--type", "Mesage"}, "", 4, "", "did you mean Message?"},
		{[]string{"compile", at("good.acp"), "--lang", "go", "-o", at("fits.json")}, "", 2, "", "DIR/fits.json is a file: -o is the directory"},
		{[]string{"compile", at("blank.acp"), "--lang", "go", "-o", dir}, "", 3, "", "DIR/blank.acp declares no type"},
		{[]string{"check", at("blank.acp")}, "", 0, "DIR/blank.acp has no faults and declares nothing\n", ""},
		{[]string{"check", "-"}, "type A = { b: Int }", 0, "- is good: 1 type, a message is a A\n", ""},
		{[]string{"check", "-"}, "type A = { b: In }", 3, "", "-:1:15: there is no type In (did you mean \"Int\"?)"},
		{[]string{"check", "-", at("fits.json")}, "type A = { id: String }", 0, "DIR/fits.json fits\n", ""},
		{[]string{"check", "-", "-"}, "", 2, "", "only one of FILE and MESSAGE can be stdin"},
		{[]string{"check", at("good.acp"), "--type", "ID"}, "", 4, "", "ID in DIR/good.acp is no record, and a message is one\n      records are Message, Other; without --type it is Message"},
		{[]string{"check", at("sub")}, "", 1, "", "DIR/sub cannot be read: is a directory\n      DIR/sub is a directory: name a file"},
		{[]string{"check", at("good.acp"), at("sub")}, "", 1, "", "DIR/sub cannot be read: is a directory\n"},
		{[]string{"check", at("good.acp"), at("none.json")}, "", 4, "", "skep: there is no file DIR/none.json\n"},
		{[]string{"check", at("good.acp"), at("gone.json"), at("none.json"), at("fits.json"), "-"}, `{"id":1}`, 4, "DIR/fits.json fits\n", "-: Message.id: is no string\nskep: there is no file DIR/gone.json\nskep: there is no file DIR/none.json\n"},
		{[]string{"check", at("good.acp"), "-"}, "{\"id\":\n  'a'}", 8, "", "-: the text is no JSON: line 2, column 3: invalid character '\\'' looking for beginning of value\n"},
		{[]string{"check", at("good.acp"), "-"}, `{"id":"1","id":"2"}`, 8, "", "-: the text has a member twice: \"id\" in Message\n"},
		{[]string{"check", at("good.acp/x")}, "", 1, "", "DIR/good.acp/x cannot be read: not a directory"},
		{[]string{"check", at("many.acp")}, "", 3, "", "\nand at least 5 more\n"},
		{[]string{"compile", "-", "--lang", "proto"}, "type A = { b: Int }", 2, "", "--lang proto needs a FILE: the numbers of fields are kept in FILE.lock"},
		{[]string{"compile", "-", "--lang", "jsonschema", "-o", at("out")}, "type A = { b: Int }", 0, "DIR/out/messages.schema.json\n", ""},
		{[]string{"compile", at("good.acp"), "--lang", "ts"}, "", 2, "", `no language is called "ts"; there are go, scala, typescript, python, java, rust, jsonschema, proto` + "\n      did you mean typescript?"},
		{[]string{"compile", at("good.acp"), "--lang", "Golang"}, "", 2, "", "did you mean go?"},
		{[]string{"compile", at("good.acp"), "--lang", "python", "--package", "mail"}, "", 2, "", "code in python has no package, and is called after its file; those with one are go, scala, java, proto"},
		{[]string{"compile", at("good.acp"), "--lang", "go", "--package", "func"}, "", 2, "", "func is a word of a language"},
		{[]string{"compile", at("broken.acp"), "--lang", "go", "-o", at("out/locked")}, "", 0, "messages.go", ""},
		{[]string{"compile", at("good.acp"), "--lang", "go", "-o", at("own")}, "", 5, "", "DIR/own/read.go is there already and was not made by acp compile\n      move it, or name another directory with -o"},
		{[]string{"compile", at("good.acp"), "--lang", "go", "-o", ""}, "", 2, "", "-o is the directory to write to, and empty; this one is called ."},
		{[]string{"compile", at("good.acp"), "--lang", "go", "-o", at("good.acp/x")}, "", 1, "", "DIR/good.acp/x cannot be made: not a directory"},
		{[]string{"fmt", at("sub/bad.acp")}, "", 3, "", "DIR/sub/bad.acp:4:1"},
	} {
		code, stdout, stderr := run(nil, tt.stdin, append([]string{"acp"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%v: %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
	if text, err := os.ReadFile(at("own/read.go")); err != nil || string(text) != "package mine\n" {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := os.Stat(at("own/messages.go")); err == nil {
		t.Error("one file of several was written")
	}
	code, stdout, _ := run(nil, "", "acp", "check", at("sub/bad.acp"), "-o", "json")
	if code != 3 || !strings.Contains(stdout, `"line": 4,`) || !strings.Contains(stdout, `"messages": []`) {
		t.Error(code, stdout)
	}
	code, stdout, _ = run(nil, "", "acp", "check", at("good.acp"), at("fits.json"), "-o", "json")
	if code != 0 || !strings.Contains(stdout, `"fits": true`) || !strings.Contains(stdout, `"faults": []`) {
		t.Error(code, stdout)
	}
}

// -o is a directory for compile; the format is left to its variable. The numbers of a
// proto file are kept beside the declarations.
func TestAcpCompile(t *testing.T) {
	t.Parallel()
	dir, run := acpShell(t, acpFiles)
	at := func(name string) string { return filepath.Join(dir, name) }
	code, stdout, stderr := run(nil, "", "acp", "compile", at("good.acp"), "--lang", "go", "-o", at("out/go"), "--package", "mail")
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "DIR/out/go/messages.go\nDIR/out/go/parse.go\n") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	if text, err := os.ReadFile(at("out/go/messages.go")); err != nil || !strings.Contains(string(text), "\npackage mail\n") {
		t.Error(err)
	}
	code, stdout, stderr = run(map[string]string{"SKEP_OUTPUT": "json"}, "", "acp", "compile", at("good.acp"), "--lang", "proto", "-o", at("out"))
	if code != 0 || !strings.Contains(stdout, `"DIR/out/good.proto"`) {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	first, err := os.ReadFile(at("good.acp.lock"))
	if err != nil || !strings.Contains(string(first), "Message.id 1 string\n") {
		t.Errorf("%s, %v", first, err)
	}
	if err := os.WriteFile(at("good.acp"), []byte(strings.Replace(goodAcp, "id: ID, ", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr = run(nil, "", "acp", "compile", at("good.acp"), "--lang", "proto", "-o", at("out")); code != 0 {
		t.Error(code, stderr)
	}
	if text, err := os.ReadFile(at("out/good.proto")); err != nil || !strings.Contains(string(text), "n = 2;") || !strings.Contains(string(text), "reserved 1;") {
		t.Errorf("%s, %v", text, err)
	}
	code, stdout, _ = run(nil, "", "acp", "compile", at("good.acp"), "--lang", "jsonschema", "--type", "Other", "-o", at("out"))
	if text, err := os.ReadFile(at("out/good.schema.json")); code != 0 || err != nil || !strings.Contains(string(text), `"$ref": "#/$defs/Other"`) {
		t.Errorf("%d %s %v", code, stdout, err)
	}
}

// fmt writes the file once, and leaves a good one alone.
func TestAcpFmt(t *testing.T) {
	t.Parallel()
	dir, run := acpShell(t, map[string]string{"a.acp": "type A=String//x\nenum B{C}"})
	file, want := filepath.Join(dir, "a.acp"), "type A = String //x\n\nenum B {\n  C\n}\n"
	for _, out := range []string{"DIR/a.acp\n", ""} {
		code, stdout, stderr := run(nil, "", "acp", "fmt", file)
		text, err := os.ReadFile(file)
		if code != 0 || stdout != out || err != nil || string(text) != want {
			t.Errorf("%d %q %s\n%s %v", code, stdout, stderr, text, err)
		}
	}
	if code, stdout, stderr := run(nil, "type A=String//x\nenum B{C}", "acp", "fmt", "-"); code != 0 || stdout != want {
		t.Errorf("%d %q %s", code, stdout, stderr)
	}
}
