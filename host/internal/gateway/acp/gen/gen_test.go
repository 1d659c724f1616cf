package gen

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/gateway/acp/dsl"
)

var update = flag.Bool("update", false, "write what is expected in testdata anew")

func readFile(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func load(t testing.TB, name, text string) *dsl.Schema {
	t.Helper()
	s, err := dsl.Load(name, func(string) (string, error) { return text, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func generate(t testing.TB, language string, s *dsl.Schema) []File {
	t.Helper()
	files, err := Generate(language, s, Options{Root: s.Root()})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// what the document's declarations and all of the language become is as it was,
// byte for byte, and the same on each run.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"document.acp", "probe.acp"} {
		s := load(t, name, readFile(t, filepath.Join("testdata", name)))
		for _, language := range Languages() {
			if language == "proto" && name == "probe.acp" {
				s = load(t, name, flat(readFile(t, "testdata/probe.acp")))
			}
			files, again := generate(t, language, s), generate(t, language, s)
			if diff := cmp.Diff(files, again); diff != "" {
				t.Errorf("%s: the second time it differs: %s", language, diff)
			}
			for _, f := range files {
				if language == "go" && f.Name != "messages.go" {
					continue // a copy of what check has
				}
				file := filepath.Join("testdata", "golden", language, strings.TrimSuffix(name, ".acp"), f.Name+".txt")
				if *update {
					if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(withoutSupport(f.Text)), 0o600)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if diff := cmp.Diff(readFile(t, file), withoutSupport(f.Text)); diff != "" {
					t.Errorf("%s differs (-want +got); if that is meant, run with -update:\n%s", file, diff)
				}
			}
		}
	}
}

// withoutSupport leaves out the part that is the same for all declarations.
func withoutSupport(text string) string {
	for _, support := range []string{typescriptSupport, pythonSupport, javaSupport, scalaSupport, rustSupport} {
		text = strings.Replace(text, strings.TrimSpace(support), "SUPPORT", 1)
	}
	return text
}

// flat has no lists of lists, which proto3 lacks.
func flat(text string) string {
	return strings.NewReplacer("List<List<Int>>", "List<Int>", "Map<String, List<ItemID>>", "Map<String, ItemID>").Replace(text)
}

func TestGenerateRefuses(t *testing.T) {
	t.Parallel()
	s := load(t, "x.acp", "type A = { b: Int }")
	for _, tt := range []struct{ language, pkg, want string }{
		{"cobol", "", `no language is called "cobol"; there are go, `}, {"go", "a b", `not "a b"`}, {"go", "Messages", `not "Messages"`},
		{"go", "a.b", "has no dot"}, {"java", "org.new", "new is a word of a language"}, {"go", "type", "type is a word"},
		{"python", "mail", "python has no package"}, {"jsonschema", "mail", "those with one are go, scala, java, proto"},
		{"java", "java.lang", `cannot be called "java.lang": the names below java are the language's own`}, {"java", "javax.swing", "below javax"},
		{"scala", "java.lang", "below java"}, {"scala", "scala", "below scala"},
	} {
		if _, err := Generate(tt.language, s, Options{Package: tt.pkg}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for _, pkg := range []string{"javas.lang", "com.java.lang", "org.scala"} {
		if _, err := Generate("java", s, Options{Package: pkg}); err != nil {
			t.Errorf("%s: %v", pkg, err)
		}
	}
	for _, text := range []string{"List<List<Int>>", "Map<String, List<Int>>", "List<Map<String, Int>>"} {
		_, err := Generate("proto", load(t, "x.acp", "type A = {\n b: "+text+" }"), Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "x.acp:2:2: proto3 has no lists") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// BenchmarkGenerate is the time in which the code of a language is made for the document's
// declarations, and for a file of 1,240 records.
func BenchmarkGenerate(b *testing.B) {
	var large strings.Builder
	for i := range 1240 {
		fmt.Fprintf(&large, "// A record.\ntype T%d = {\n  a: String,\n  b: List<String>?, // some\n  c: T%d?,\n  d: Boolean\n}\n", i, (i+1)%1240)
	}
	for name, text := range map[string]string{"document": readFile(b, "testdata/document.acp"), "large": large.String()} {
		s := load(b, name+".acp", text)
		for _, language := range Languages() {
			b.Run(name+"/"+language, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					generate(b, language, s)
				}
			})
		}
	}
}
