package dsl

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are files that a bound refuses, and the bound.
func hostile() map[string]struct{ text, want string } {
	values := "enum E {" + strings.Repeat("A,", 500_000)
	return map[string]struct{ text, want string }{
		"bytes":       {strings.Repeat(" ", MaxBytes+1), "more than 1048576 bytes"},
		"values":      {values, "more than 10000 items"},
		"million":     {"enum E {" + strings.Repeat("A,", 1_000_000), "more than 1048576 bytes"},
		"records":     {"type T = " + strings.Repeat("{a:", 300_000), "nested deeper than 64"},
		"lists":       {"type T = " + strings.Repeat("List<", 200_000), "nested deeper than 64"},
		"arguments":   {"type T = List<" + strings.Repeat("A,", 500_000), "more than 10000 items"},
		"annotations": {strings.Repeat("@a(", 300_000), `a text, a number or a name is expected, not "@"`},
		"remarks":     {strings.Repeat("@a ", 300_000), "more than 10000 items"},
		"chain":       {many(4000, "type A%[1]d = B%[1]d\ntype B%[1]d = A%[2]d\n"), "a type leads over more than 64 others"},
		"names":       {many(8999, "type A%[1]d = A%[2]d\n") + "type A8999 = A0\n", "a type leads over more than 64 others"},
		"circle":      {many(4998, "type A%[1]d = {a: A%[2]d}\n") + "type A4998 = {a: A0}\n", "a A0 would contain another one without end"},
		"lists down":  {"type M = { a: " + strings.Repeat("List<", 17) + "Int" + strings.Repeat(">", 17) + " }", "lists and maps are nested deeper than 16 here"},
		"lists up":    {"type A0 = Int\n" + many(4000, "type A%[2]d = List<A%[1]d>\n"), "lists and maps are nested deeper than 16 here"},
		"maps up":     {"type A0 = Map<String, List<Int>>\n" + many(4, "type A%[2]d = Map<String, List<A%[1]d>>\n") + "type M = { a: List<Map<String, A4>>, b: A4, c: Map<String, List<List<A4>>>, d: List<List<List<List<List<List<List<A4>>>>>>> }", "test.acp:6:77: lists and maps are nested deeper than 16 here"},
		"names up":    {"type A0 = Int\n" + many(4000, "type A%[2]d = A%[1]d\n"), "a type leads over more than 64 others"},
		"name":        {"type A" + strings.Repeat("a", 1<<16) + " = Int", "a name has at most 100 characters, not 65537"},
		"field name":  {"type A = { a" + strings.Repeat("a", 100) + ": Int }", "a name has at most 100 characters, not 101"},
		"value name":  {"enum A { a" + strings.Repeat("a", 100) + " }", "a name has at most 100 characters, not 101"},
		"inner names": {nestedRecords(40, strings.Repeat("a", 100)), "the record here needs a name"},
		"unknown":     {many(4000, "type B%[1]d = Bx%[1]d\n"), "there is no type Bx0"},
		"strays":      {strings.Repeat("$ ", 500_000), "cannot stand here"},
		"lines":       {strings.Repeat("\n", MaxBytes-1) + "$", "1048576:1:"},
		"carries":     {"enum E { A }\nsemantics A expects A {" + strings.Repeat("a,", 400_000), "more than 10000 items"},
		"braces":      {strings.Repeat("type T = {a:", 80_000), "is expected"},
		"fields":      {"type T = {" + many(121, "a%[1]d: Int,") + "}", "at most 120 fields"},
		"constants":   {"enum T {" + many(1001, "A%[1]d,") + "}", "at most 1000 values"},
		"utf8":        {"type T = \xff" + strings.Repeat("x", 1<<19), "this is not UTF-8"},
		"texts":       {strings.Repeat("\"\"", 500_000), "is expected"},
		"c":           {strings.Repeat("/* */ type ", 90_000), "a comment begins with //"},
		"hashes":      {strings.Repeat("#\n", 500_000), "a comment begins with //"},
		"late":        {strings.Repeat(" ", MaxBytes-200) + strings.Repeat("$ a ", 50), "cannot stand here"},
		"late lines":  {strings.Repeat("\n", MaxBytes-200) + strings.Repeat("$ a ", 50), "cannot stand here"},
		"late é":      {"//" + strings.Repeat("é", MaxBytes/2-200) + "\ntype A = {" + strings.Repeat(" /**/ a b", 20), "a comment begins with //"},
		"quotes":      {strings.Repeat("\"\\", 500_000), "this text has no end"},
	}
}

// nestedRecords are records in one another that are all called alike.
func nestedRecords(n int, name string) string {
	return "type A = " + strings.Repeat("{ "+name+": ", n) + "Int" + strings.Repeat(" }", n)
}

func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i, i+1)
	}
	return b.String()
}

// Hostile files are refused at a bound, with a place, and with few faults.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, h := range hostile() {
		_, err := load(h.text)
		faults, ok := err.(Faults)
		if !ok || len(faults) > maxFaults || !strings.Contains(err.Error(), h.want) || faults[0].Line == 0 || len(err.Error()) > 20_000 {
			t.Errorf("%s: %.300v, want %q", name, err, h.want)
		}
	}
}

// What is at the bounds is taken.
func TestWithinBounds(t *testing.T) {
	t.Parallel()
	deep := "type T = " + strings.Repeat("{ a: ", 63) + "Int" + strings.Repeat("}", 63)
	for name, text := range map[string]string{
		"fields": "type T = {" + many(120, "a%[1]d: Int,") + "}", "values": "enum T {" + many(1000, "A%[1]d,") + "}",
		"nested": "type L = " + strings.Repeat("List<", 16) + "Int" + strings.Repeat(">", 16) + "\ntype M = { a: L }", "name": "type A" + strings.Repeat("a", 99) + " = Int",
		"items": many(5000, "type A%[1]d = { a: Int }\n"), "depth": strings.ReplaceAll(deep, "a: {", "a: {"),
	} {
		if _, err := Parse(name, text); err != nil {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// mebibyte is a file of nearly 1 MiB with nearly 10,000 items.
func mebibyte() string {
	about := strings.Repeat("x", 170)
	var b strings.Builder
	for i := range 1240 {
		fmt.Fprintf(&b, "// %s\ntype T%d = {\n  a: String, // %s\n  b: List<Map<String, Int>>?, // %s\n  c: T%d?, // %s\n  d: Boolean\n}\n\n", about, i, about, about, (i+1)%1240, about)
	}
	return b.String() + "// " + strings.Repeat("x", MaxBytes-b.Len()-4) + "\n"
}

// comments are files of 1 MiB that have little more than comments, in each place for them.
func comments() []string {
	lines := func(n int) string { return strings.Repeat("//\n", n) }
	const all = MaxBytes/3 - 100
	return []string{
		lines(all), lines(all) + "type A = Int", "type A = {}\n" + lines(all), "type A = {\n" + lines(all) + "a: Int }", "type A = {\na: Int\n" + lines(all) + "}",
		"enum A {\n" + lines(all) + "B }", "enum A { B //\n" + lines(all) + "}", "type A =\n" + lines(all) + "Int", "type A = List\n" + lines(all/2) + "<\n" + lines(all/2) + "Int>",
		"type A =" + strings.Repeat(" List//\n//\n<//\n//\n", 16) + "Int" + strings.Repeat(">\n"+lines(all/20), 16),
		"type A = {" + strings.Repeat("a: Int //\n, //\n//\n", 50_000) + "}", "@a(\n" + strings.Repeat("1\n//\n//\n,//\n//\n", 4_000) + lines(250_000) + ") type A = {}",
		"enum A { B }\nsemantics\n" + lines(all/2) + "B expects\n" + lines(all/2) + "nothing",
	}
}

// BenchmarkLoad is the time and memory of a file of 1 MiB.
func BenchmarkLoad(b *testing.B) {
	text := mebibyte()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := load(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostile is how long files take that are refused.
func BenchmarkHostile(b *testing.B) {
	for name, h := range hostile() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := load(h.text); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
