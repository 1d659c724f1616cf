package dsl

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// apart is what the one form does not keep: places, and how items are set apart.
var apart = cmp.Options{cmpopts.IgnoreTypes(Pos{}, resolution{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Comment{}, "Gap"), cmpopts.IgnoreFields(Comments{}, "Gap"), cmp.Transformer("none", func(c *Comments) Comments {
	if c == nil {
		return Comments{}
	}
	return *c
})}

// A-065, V-A39: fmt keeps each comment, and changes nothing the second time.
func TestFormat(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/format/*.acp")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "testdata/document.acp") {
		text := readFile(t, file)
		f, err := Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		got := Format(f)
		golden(t, strings.TrimSuffix(file, ".acp")+".formatted", got)
		checkFormatted(t, f, got)
		if before, after := strings.Count(text, "//"), strings.Count(got, "//"); before != after {
			t.Errorf("%s: %d comments became %d", file, before, after)
		}
	}
}

// checkFormatted reads what was written: the tree is the same, and so is its text.
func checkFormatted(t testing.TB, tree *File, text string) {
	t.Helper()
	again, err := Parse(tree.Name, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(tree, again, apart); diff != "" {
		t.Fatalf("%s\n%s", diff, text)
	}
	if second := Format(again); second != text {
		t.Fatalf("the second time it differs:\n%s", cmp.Diff(text, second))
	}
}

// any tree is read back from its text as it was.
func TestRandomTrees(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		g := grower{rand.New(rand.NewPCG(seed, 1))}
		f := &File{Name: "random.acp", Tail: g.comments()}
		for range g.IntN(6) {
			f.Items = append(f.Items, g.item())
		}
		checkFormatted(t, f, Format(f))
	}
}

// grower makes random trees.
type grower struct{ *rand.Rand }

func (g grower) word() Word {
	words := []string{"type", "enum", "semantics", "import", "expects", "nothing", "a", "Header", "x_1", "String"}
	return Word{Text: words[g.IntN(len(words))] + strings.Repeat("z", g.IntN(3))}
}

func (g grower) comments() (all []Comment) {
	for range g.IntN(3) * g.IntN(2) {
		all = append(all, Comment{Text: "//" + strings.Repeat(" é{,\"", g.IntN(3)), Gap: g.IntN(2) == 0})
	}
	return all
}

func (g grower) about() *Comments {
	c := &Comments{Lead: g.comments(), Gap: g.IntN(2) == 0}
	if g.IntN(3) == 0 {
		c.Trail = fmt.Sprintf("// %d }", g.IntN(10))
	}
	return c
}

func (g grower) item() *Item {
	it := &Item{Comments: g.about(), Annotations: g.annotations(), Name: g.word()}
	switch []ItemKind{TypeItem, TypeItem, EnumItem, SemanticsItem, ImportItem}[g.IntN(5)] {
	case TypeItem:
		it.Type = g.typeExpr(3)
	case EnumItem:
		it.Enum = &EnumExpr{}
		for range g.IntN(4) {
			it.Enum.Values = append(it.Enum.Values, Value{g.about(), g.word()})
		}
		it.Enum.Tail = g.comments()
	case SemanticsItem:
		it.Semantics = &SemanticsExpr{Answer: g.word()}
		for range g.IntN(3) {
			it.Semantics.Carries = append(it.Semantics.Carries, g.word())
		}
	case ImportItem:
		it.Name.Text = []string{"a.acp", `b"\.acp`, "é.acp"}[g.IntN(3)]
	}
	return it
}

func (g grower) annotations() (all []Annotation) {
	for range g.IntN(3) * g.IntN(2) {
		a := Annotation{Name: g.word()}
		for range g.IntN(3) {
			arg := Argument{Value: []string{`"x"`, "-1.5", "true"}[g.IntN(3)]}
			if g.IntN(2) == 0 {
				arg.Key = g.word().Text
			}
			a.Args = append(a.Args, arg)
		}
		all = append(all, a)
	}
	return all
}

func (g grower) typeExpr(depth int) *TypeExpr {
	t := &TypeExpr{Optional: g.IntN(3) == 0}
	if depth == 0 || g.IntN(3) > 0 {
		t.Name = g.word().Text
		for range g.IntN(3) * min(depth, 1) {
			t.Args = append(t.Args, g.typeExpr(depth-1))
		}
		return t
	}
	t.Record = &RecordExpr{Tail: g.comments()}
	for range g.IntN(4) {
		t.Record.Fields = append(t.Record.Fields, &FieldExpr{Comments: g.about(), Annotations: g.annotations(), Name: g.word(), Type: g.typeExpr(depth - 1)})
	}
	return t
}

// commentsOf are the comments of a text without faults, in their order.
func commentsOf(text string) (all []string) {
	l := lexer{text: newSource("", text).text, at: Pos{Line: 1, Col: 1}}
	for tok := (token{kind: tokenName}); tok.kind != tokenEnd; {
		l.next(&tok)
		for _, c := range tok.comments {
			all = append(all, c.Text)
		}
	}
	return all
}

// FuzzParse: no text makes the parser or the resolver fall, and what it takes is
// written and read as the same, with each comment in its order.
func FuzzParse(f *testing.F) {
	f.Add(readFile(f, "testdata/document.acp"))
	f.Add("// a\n\n@plain @x(k=\"v\", 1) type A = { b: List<Map<String, C>>? /" + "/ c\n} // d\nimport \"e.acp\"\nsemantics A expects nothing { b, c }\nenum E { A, /" + "/ x\n B, }")
	f.Add("type A = {\n// c\n, }")
	for _, name := range []string{"lists up", "names up", "field name", "value name", "circle"} { // none is deep: go-cmp compares what is deep slowly
		text := hostile()[name].text
		f.Add(text[:min(len(text), 2<<10)])
	}
	f.Add("@closd @field() type A = Int\n@open @x(-1.5, k=\"\\\\\") enum E { A }")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := load(text); err == nil {
			for _, r := range s.Records() {
				_ = r.Fault("", "x").String()
			}
		} else {
			_ = err.Error()
		}
		if tree, err := Parse("fuzz.acp", text); err == nil {
			formatted := Format(tree)
			checkFormatted(t, tree, formatted)
			if diff := cmp.Diff(commentsOf(text), commentsOf(formatted)); diff != "" {
				t.Errorf("comments differ: %s\n%s", diff, formatted)
			}
		}
	})
}
