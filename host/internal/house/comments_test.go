package house_test

import (
	"bufio"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// habits are phrases that make a comment hard to read, and how many lines of 1,000
// may have one.
var habits = []struct {
	name string
	text *regexp.Regexp
	most float64
}{
	{"that of, those of: name the type", regexp.MustCompile(`(?i)\b(that|those) of\b`), 2},
	{"nobody, whoever, somebody: name the caller", regexp.MustCompile(`(?i)\b(nobody|whoever|somebody)\b`), 2},
	{"says that, tells why: a thing does not speak", regexp.MustCompile(`(?i)\b(says|tells|say|tell) (that|why|what|whether|how|who|which)\b`), 2},
}

var comment = regexp.MustCompile(`^\s*//`)

// TestComments holds how comments are written.
func TestComments(t *testing.T) {
	t.Parallel()
	lines, found := 0, make([]int, len(habits))
	eachComment(t, func(_ string, _ int, line string) {
		lines++
		for i, h := range habits {
			if h.text.MatchString(line) {
				found[i]++
			}
		}
	})
	for i, h := range habits {
		rate := 1000 * float64(found[i]) / float64(lines)
		t.Logf("%s: %d of %d comment lines, %.1f per 1,000", h.name, found[i], lines, rate)
		if rate > h.most {
			t.Errorf("%s: %.1f per 1,000 comment lines, at most %v", h.name, rate, h.most)
		}
	}
}

var reference = regexp.MustCompile(`(?i)\b(contract|decision|rule)s? (\d+\.\d|\d+\b)`)

// references is how many comments may still refer to pages that are not here.
const references = 10

// TestReferences: a comment refers to a statement of spec/CONFORMANCE.md or links a
// specification; other numbers lead nowhere.
func TestReferences(t *testing.T) {
	t.Parallel()
	var found []string
	eachComment(t, func(path string, _ int, line string) {
		if reference.MatchString(line) {
			found = append(found, path+": "+strings.TrimSpace(line))
		}
	})
	if len(found) > references {
		t.Errorf("%d comments refer to what is not here, at most %d:\n%s", len(found), references, strings.Join(found, "\n"))
	}
}

// TestPackageComments: the comment of a package has what it owns and what it must
// not know.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	docs := map[string]string{}
	eachFile(t, func(pkg, path string) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			docs[pkg] += f.Doc.Text()
		}
	})
	for pkg, doc := range docs {
		doc = strings.Join(strings.Fields(doc), " ")
		for _, want := range []string{" owns ", "must not know"} {
			if !strings.Contains(doc, want) && !strings.HasPrefix(doc, "Command ") {
				t.Errorf("the comment of package %s has no %q", pkg, want)
			}
		}
	}
}

// eachComment visits the lines of comments of all modules.
func eachComment(t *testing.T, visit func(path string, n int, line string)) {
	t.Helper()
	eachGoFile(t, func(path string) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for n := 1; s.Scan(); n++ {
			if comment.MatchString(s.Text()) {
				visit(filepath.ToSlash(path), n, s.Text())
			}
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
	})
}
