package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// Statements of other protocols have three digits: X-14 is a decision about MAIL. Their
	// vectors have two.
	inText = regexp.MustCompile(`\b([RSGXAUMI]-|V-[AUIM])(\d{2,3})(?:(?:\s+to\s+|–)(?:[RSGXAUMI]-|V-[AUIM])(\d{2,3}))?\b`)
	inName = regexp.MustCompile(`_([RSG])(\d{2,3})`)
)

// namedIn lists the statements that a test's name and doc comment name.
func namedIn(name, doc string) (ids []string) {
	for _, m := range inName.FindAllStringSubmatch(name, -1) {
		ids = append(ids, m[1]+"-"+m[2])
	}
	for _, m := range inText.FindAllStringSubmatch(doc, -1) {
		if strings.ContainsAny(m[1], "XAUMI") && len(m[2]) < 3 && !strings.HasPrefix(m[1], "V-") {
			continue
		}
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[3]) // 0 without a range
		for n := first; n <= max(first, last); n++ {
			ids = append(ids, fmt.Sprintf("%s%0*d", m[1], len(m[2]), n))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// findTests lists the tests of the root module by the statements they name. A test
// is written DIRECTORY.NAME.
func findTests(root string) (map[string][]string, error) {
	tests := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (nested == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		return readTests(root, path, tests)
	})
	for _, of := range tests {
		slices.Sort(of)
	}
	return tests, err
}

func readTests(root, path string, tests map[string][]string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
			continue
		}
		for _, id := range namedIn(f.Name.Name, f.Doc.Text()) {
			tests[id] = append(tests[id], filepath.ToSlash(dir)+"."+f.Name.Name)
		}
	}
	return nil
}

// arguments make go test run all tests that name a statement.
func arguments(tests map[string][]string) string {
	names, dirs := map[string]bool{}, map[string]bool{}
	for _, of := range tests {
		for _, t := range of {
			dir, name, _ := strings.Cut(t, ".")
			names[name], dirs["./"+dir] = true, true
		}
	}
	return "-run ^(" + strings.Join(slices.Sorted(maps.Keys(names)), "|") + ")$ " + strings.Join(slices.Sorted(maps.Keys(dirs)), " ")
}

// readResults reads the output of go test -json: how each test ended.
func readResults(r io.Reader) (map[string]string, error) {
	went := map[string]string{}
	for dec := json.NewDecoder(r); ; {
		var e struct{ Action, Package, Test string }
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return went, nil
		} else if err != nil {
			return nil, err
		}
		if e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			_, dir, _ := strings.Cut(e.Package, "/")
			went[dir+"."+e.Test] = e.Action
		}
	}
}

// verdict is the worst end of some tests.
func verdict(went map[string]string, of []string) string {
	worst := "pass"
	for _, t := range of {
		switch how := went[t]; {
		case how == "":
			return "not run"
		case how == "fail", how == "skip" && worst == "pass":
			worst = how
		}
	}
	return worst
}
