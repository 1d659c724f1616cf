package main

import (
	"errors"
	"fmt"
	"go/parser"
	gotoken "go/token"
	"os"
	"runtime"
	"strings"
	"time"

	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/gateway/acp/gen"
)

// declarations compares the compiler of ACP's declarations with Go's parser, each on a file of
// 1 MiB, and the refusal of hostile files with the reading of their bytes: in computing time, all
// threads together.
func declarations(b *bench) {
	text, peer := recordsOf("type T%[1]d = {\n  a: String, // %[3]s\n  b: Map<String, Int>?, // %[3]s\n  c: T%[2]d?, // %[3]s\n  d: Boolean\n}\n\n"),
		"package p\n"+recordsOf("type T%[1]d struct {\n\ta string // %[3]s\n\tb map[string]int // %[3]s\n\tc *T%[2]d // %[3]s\n\td bool\n}\n\n")
	goParser := computing("go/parser", func() error {
		_, err := parser.ParseFile(gotoken.NewFileSet(), "p.go", peer, parser.ParseComments|parser.SkipObjectResolution)
		return err
	})
	read := computing("read", func() error { return readDeclarations(text) })
	costs := must(b.costs(goParser, read))
	size := fmt.Sprintf("%.2f MiB of declarations", float64(len(text))/(1<<20))
	b.report.compare(size+" read", costs[1], seconds, "go/parser, as structs", costs[0], none())
	for _, language := range gen.Languages() {
		costs := must(b.costs(goParser, computing(language, func() error { return compileDeclarations(text, language) })))
		b.report.add(newRow("  compiled to "+language, costs[1], seconds, "go/parser, as structs", costs[0], below(200*time.Millisecond)))
		allocated := allocatedBy(func() { check(compileDeclarations(text, language)) })
		b.report.compare("  memory taken for it in all", allocated, bytesOf, "64 MiB", 64<<20, atMost(1))
	}
	for _, h := range hostileDeclarations() {
		refusalOf(b, h.name, h.text)
	}
}

// computing is a subject that counts the computing time of f, whatever else the machine does.
func computing(name string, f func() error) subject {
	return subject{name, func(span time.Duration) (int, time.Duration, error) {
		at := busy()
		ops, _, err := repeat(span, f)
		return ops, busy() - at, err
	}}
}

// recordsOf is nearly 1 MiB of records in a form of a language: %[1]d and %[2]d are the numbers
// of a record and of the next, %[3]s is a comment.
func recordsOf(form string) string {
	const records = 1230 // of four fields each, with their types almost as many as may be
	about := strings.Repeat("x", 230)
	var s strings.Builder
	for i := range records {
		fmt.Fprintf(&s, form, i, (i+1)%records, about)
	}
	return s.String()
}

func readDeclarations(text string) error {
	_, err := dsl.Load("bench.acp", func(string) (string, error) { return text, nil })
	return err
}

func compileDeclarations(text, language string) error {
	s, err := dsl.Load("bench.acp", func(string) (string, error) { return text, nil })
	if err != nil {
		return err
	}
	_, err = gen.Generate(language, s, gen.Options{Root: s.Types[0], Lock: gen.NewLock()})
	return err
}

// allocatedBy is how many bytes of memory a function takes in all, given back or not.
func allocatedBy(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

type namedText struct{ name, text string }

// hostileDeclarations are files of up to 1 MiB that are refused.
func hostileDeclarations() []namedText {
	numbered := func(n int, form string) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, form, i, i+1)
		}
		return s.String()
	}
	return []namedText{
		{"a million values, 2 MiB", "enum E {" + strings.Repeat("A,", 1_000_000)},
		{"500,000 values", "enum E {" + strings.Repeat("A,", 500_000)},
		{"300,000 records, one in the other", "type T = " + strings.Repeat("{a:", 300_000)},
		{"200,000 lists, one in the other", "type T = " + strings.Repeat("List<", 200_000)},
		{"300,000 annotations", strings.Repeat("@a ", 300_000)},
		{"a chain of 8,000 names", numbered(4000, "type A%[1]d = B%[1]d\ntype B%[1]d = A%[2]d\n")},
		{"a circle of 9,000 names", numbered(8999, "type A%[1]d = A%[2]d\n") + "type A8999 = A0\n"},
		{"a circle of 4,999 records", numbered(4998, "type A%[1]d = {a: A%[2]d}\n") + "type A4998 = {a: A0}\n"},
		{"4,000 unknown types", numbered(4000, "type B%[1]d = Bx%[1]d\n")},
		{"500,000 strays", strings.Repeat("$ ", 500_000)},
		{"a text without an end", strings.Repeat("\"\\", 500_000)},
		{"500,000 texts in a line", strings.Repeat("\"\"", 500_000)},
	}
}

// refusalOf measures the refusal of declarations that have a fault at a place, beside the time in
// which their bytes are read from a file that is in memory.
func refusalOf(b *bench, name, text string) {
	file := must(os.CreateTemp("", "bench-*.acp"))
	defer os.Remove(file.Name())
	_, err := file.WriteString(text)
	check(errors.Join(err, file.Close()))
	var took, reading []float64
	for range 5 * b.rounds {
		start := busy()
		raw := must(os.ReadFile(file.Name()))
		between := busy()
		err := readDeclarations(string(raw))
		reading, took = append(reading, (between-start).Seconds()), append(took, (busy()-between).Seconds())
		var faults dsl.Faults
		if !errors.As(err, &faults) || faults[0].Line == 0 {
			check(fmt.Errorf("%s: not refused at a place: %v", name, err))
		}
	}
	b.report.compare("refused: "+name, median(took), seconds, "its bytes read", median(reading), none())
	b.report.add(newRow("  the slowest of "+fmt.Sprint(len(took)), percentile(took, 100), seconds, "its bytes read", percentile(reading, 100), below(10*time.Millisecond)))
}
