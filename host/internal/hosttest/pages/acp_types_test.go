package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// cells returns the rows of the table of a page that begins with a head, as the code in
// each cell.
func cells(t *testing.T, page, head string) (rows [][][]string) {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+head+"\n")
	if !found {
		t.Fatalf("the page has no table %s", head)
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	for _, line := range append([]string{head}, strings.Split(table, "\n")[1:]...) {
		var row [][]string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			var code []string
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				code = append(code, m[1])
			}
			row = append(row, code)
		}
		rows = append(rows, row)
	}
	return rows
}

// members are how the targets declare a member f0 of a type.
var members = map[string]string{
	"go": "\tF0 +TYPE +`json", "scala": `\n +f0: TYPE[,\n]`, "typescript": `readonly f0: TYPE;`, "python": `\n    f0: _?TYPE\n`,
	"java": `[( ]TYPE f0[,)]`, "rust": `pub f0: TYPE,`, "jsonschema": `"f0": \{\s+"type": "TYPE"`, "proto": `\n  TYPE f0 = \d+;`,
}

// compileMembers compiles an open record with the members f0, f1 and so on, and returns what
// was written.
func compileMembers(t *testing.T, p *installed, language string, types []string) string {
	t.Helper()
	dir, declared := t.TempDir(), "@open\ntype Message = {"
	for i, name := range types {
		declared += " f" + strconv.Itoa(i) + ": " + name + ","
	}
	file := filepath.Join(dir, "one.acp")
	if err := os.WriteFile(file, []byte(declared+" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.run(t, "", nil, "acp", "compile", file, "--lang", language, "-o", dir); got.code != 0 {
		t.Fatalf("%s", got.stderr)
	}
	written, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, name := range written {
		if name != file {
			text += hosttest.ReadText(t, name)
		}
	}
	return text
}

// TestACPPageTypes: the built-in types and the names of codecs that the page has for
// each target are what the compiler writes.
func TestACPPageTypes(t *testing.T) {
	t.Parallel()
	page, p := hosttest.ReadText(t, "../../../docs/acp.md"), install(t)
	types := cells(t, page, "| `--lang` | `String` | `Int` | `Long` | `Float` | `Boolean` | `Bytes` | `List<Int>` | `Map<String, Int>` |")
	codecs := cells(t, page, "| `--lang` | decode, from UTF-8 | encode | check | what does not fit | others |")
	if len(types) != len(members)+1 || len(codecs) != 7 {
		t.Errorf("types of %d targets, codecs of %d languages", len(types)-1, len(codecs)-1)
	}
	var declared []string
	for _, cell := range types[0][1:] {
		declared = append(declared, cell[0])
	}
	written := map[string]string{}
	for _, row := range types[1:] {
		language := row[0][0]
		written[language] = compileMembers(t, p, language, declared)
		for i, code := range row[1:] {
			pattern := strings.NewReplacer("TYPE", regexp.QuoteMeta(code[0]), "f0", "f"+strconv.Itoa(i), "F0", "F"+strconv.Itoa(i)).Replace(members[language])
			if !regexp.MustCompile(pattern).MatchString(written[language]) {
				t.Errorf("%s is not %s in %s", declared[i], code[0], language)
			}
		}
	}
	name := regexp.MustCompile(`(\w+)(\(|$)`)
	for _, row := range codecs[1:] {
		for _, i := range []int{1, 2, 3, 5} {
			for _, code := range row[i] {
				if m := name.FindStringSubmatch(code); m == nil || !regexp.MustCompile(`\b`+m[1]+`\b`).MatchString(written[row[0][0]]) {
					t.Errorf("%s is not in %s", code, row[0][0])
				}
			}
		}
	}
}

// TestACPPageValues: a message fits as the page has it for each built-in type.
func TestACPPageValues(t *testing.T) {
	t.Parallel()
	page, p, dir := hosttest.ReadText(t, "../../../docs/acp.md"), install(t), t.TempDir()
	rows := cells(t, page, "| | takes | refuses |")
	for i, row := range rows[1:] {
		file := filepath.Join(dir, strconv.Itoa(i)+".acp")
		if err := os.WriteFile(file, []byte("type Message = { f: "+row[0][0]+" }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for fits, values := range map[int][]string{0: row[1], 8: row[2]} {
			for _, value := range values {
				cmd := exec.CommandContext(t.Context(), p.path, "acp", "check", file, "-")
				cmd.Env, cmd.Stdin = p.env, strings.NewReader(`{"f":`+value+`}`)
				if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != fits {
					t.Errorf("%s, %s: exit code %d, want %d\n%s", row[0][0], value, cmd.ProcessState.ExitCode(), fits, out)
				}
			}
		}
	}
	if len(rows) != 10 {
		t.Errorf("%d types", len(rows)-1)
	}
}
