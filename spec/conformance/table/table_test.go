package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/openapi"
)

const root = "../../.."

// TestTable: every statement that is due has a test, every id that a test names is
// a statement, and the table says just that, with all tests passed.
func TestTable(t *testing.T) {
	t.Parallel()
	chapters, err := readStatements()
	if err != nil {
		t.Fatal(err)
	}
	tests, err := findTests(root)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range chapters {
		for _, s := range c.Statements {
			if known[s.ID] {
				t.Errorf("%s stands twice among the statements", s.ID)
			}
			known[s.ID] = true
			if s.Open == "" && len(tests[s.ID]) == 0 {
				t.Errorf("no test names %s: %s", s.ID, s.Text)
			}
		}
	}
	for id, of := range tests {
		if !known[id] {
			t.Errorf("%q name %s, which is no statement", of, id)
		}
	}
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(tablePath)))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ((?:[RSGXAUMI]-|V-[AUIM])\d+) .*\| ([^|]*) \|$`)
	went := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(raw), -1) {
		went[m[1]] = m[2]
	}
	want := render(chapters, tests, func(id string, _ []string) string {
		if went[id] != "pass" {
			t.Errorf("the table says %q of the tests of %s", went[id], id)
		}
		return went[id]
	})
	doc, err := readInterface(root)
	if err != nil {
		t.Fatal(err)
	}
	held := regexp.MustCompile(`(?m)^Result of these tests: ([a-z ]*)\.$`).FindSubmatch(raw)
	if len(held) != 2 || string(held[1]) != "pass" {
		t.Errorf("the table says %q of the tests of the interface", held)
	}
	deviations, err := openapi.Deviations()
	if err != nil {
		t.Fatal(err)
	}
	want += renderInterface(doc, "pass") + renderDeviations(deviations)
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("%s is not up to date, run make conformance (-want +got)\n%s", tablePath, diff)
	}
}

// What holds the table of endpoints are tests that there are.
func TestInterfaceTests(t *testing.T) {
	t.Parallel()
	tests, err := findTests(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, of := range tests {
		all = append(all, of...)
	}
	for _, name := range interfaceTests {
		if !slices.Contains(all, name) {
			t.Errorf("%s names no statement, or is not there", name)
		}
	}
}

func TestNamedIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, doc, want string }{
		{"TestPost_R022_S17", "", "R-022 S-17"},
		{"TestAbout_X27", "X-27 is none of ours.", ""},
		{"TestA", "TestA covers R-001, S-02\nand G-60.", "G-60 R-001 S-02"},
		{"TestA", "TestA covers X-001 to\nX-003, not X-14.", "X-001 X-002 X-003"},
		{"TestA_R009", "From R-008 to\nR-010.", "R-008 R-009 R-010"},
		{"TestA", "A-020 to\nA-022, V-A01, V-A03 to V-A04; D-A5 and A-14 are none.", "A-020 A-021 A-022 V-A01 V-A03 V-A04"},
		{"TestA", "U-001–U-003, V-U01 and D-U5, U-14.", "U-001 U-002 U-003 V-U01"},
		{"TestA", "ISO-8859, R-1, AR-022x", ""},
	} {
		if got := strings.Join(namedIn(c.name, c.doc), " "); got != c.want {
			t.Errorf("%s %q names %q, want %q", c.name, c.doc, got, c.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	went, err := readResults(strings.NewReader(`{"Action":"run","Package":"skep/a","Test":"TestGood"}
{"Action":"pass","Package":"skep/a","Test":"TestGood"}
{"Action":"skip","Package":"skep/a","Test":"TestLazy"}
{"Action":"fail","Package":"skep/b/c","Test":"TestBad"}
{"Action":"fail","Package":"skep/b/c"}`))
	if err != nil {
		t.Fatal(err)
	}
	good, lazy, bad := "a.TestGood", "a.TestLazy", "b/c.TestBad"
	for _, c := range []struct {
		of   []string
		want string
	}{
		{[]string{good}, "pass"}, {[]string{good, lazy}, "skip"}, {[]string{bad, lazy}, "fail"},
		{[]string{lazy, bad}, "fail"}, {[]string{good, "a.TestNew"}, "not run"},
	} {
		if got := verdict(went, c.of); got != c.want {
			t.Errorf("%v: %q, want %q", c.of, got, c.want)
		}
	}
	if _, err := readResults(strings.NewReader("FAIL")); err == nil {
		t.Error("what is not the output of go test -json is taken")
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	got := arguments(map[string][]string{"R-001": {"b.TestB", "a/c.TestA"}, "R-002": {"b.TestB"}})
	if want := "-run ^(TestA|TestB)$ ./a/c ./b"; got != want {
		t.Errorf("arguments %q, want %q", got, want)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	if err := run(t.TempDir(), false, filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file of results is taken")
	}
	if err := run(filepath.Join(t.TempDir(), "none"), true, ""); err == nil {
		t.Error("a missing repository is taken")
	}
}

// TestDocuments: each line of a protocol's document is accounted for once, by statements
// with tests or by a reason why there is none, and each of its statements stands in a line.
func TestDocuments(t *testing.T) {
	t.Parallel()
	chapters, err := readStatements()
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, c := range chapters {
		for _, s := range c.Statements {
			open[s.ID] = s.Open != ""
		}
	}
	for dir, level := range map[string]string{"acp": "ACP", "amp": "AMP", "iacp": "IaCP", "uamp": "UAMP"} {
		used := linesOf(t, dir, open)
		for _, c := range chapters {
			for _, s := range c.Statements {
				if s.Level == level && !used[s.ID] {
					t.Errorf("%s: no line has %s, a statement of the document", dir, s.ID)
				}
				delete(used, s.ID)
			}
		}
		for id := range used {
			t.Errorf("%s: %s is no statement", dir, id)
		}
	}
}

// linesOf are the statements that stand in the lines of a document. Lines whose statements are
// all open need a reason.
func linesOf(t *testing.T, dir string, open map[string]bool) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "spec", "gateways", dir, "statements.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Document, SHA256 string
		Lines            int
		Statements       []struct {
			Lines string
			IDs   []string
			Out   string
		}
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	next := 1
	for _, s := range document.Statements {
		from, to, isRange := strings.Cut(s.Lines, "-")
		first, err := strconv.Atoi(from)
		last, err2 := first, error(nil)
		if isRange {
			last, err2 = strconv.Atoi(to)
		}
		if err != nil || err2 != nil || first != next || last < first {
			t.Fatalf("%s: the lines %q do not begin with %d", dir, s.Lines, next)
		}
		tested := slices.ContainsFunc(s.IDs, func(id string) bool { return !open[id] })
		if next = last + 1; !tested && s.Out == "" {
			t.Errorf("%s: the lines %s have neither a statement with a test nor a reason", dir, s.Lines)
		}
		for _, id := range s.IDs {
			used[id] = true
		}
	}
	if next != document.Lines+1 {
		t.Errorf("%s: %d lines of %d are accounted for", dir, next-1, document.Lines)
	}
	return used
}
