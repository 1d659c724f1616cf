package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// old are words of earlier names, what they became, and how many declarations and
// files may still have them: 0 keeps a word out. A new private word belongs here when
// it is renamed.
var old = []struct {
	word, now string
	most      int
}{
	{"abroad", "remote", 3},
	{"circular", "interswarm broadcast", 0},
	{"crowd", "stream limiter", 0},
	{"desk", "host service", 0},
	{"errand", "remote post", 0},
	{"flight", "async op", 0},
	{"guesses", "auth throttle", 0},
	{"hear", "handle", 1},
	{"jail", "fileaction", 0},
	{"lane", "peer queue", 3},
	{"lasting", "atomicfile", 1},
	{"letter", "outbox message", 0},
	{"letters", "outbox messages", 8},
	{"neighbour", "known swarm", 0},
	{"neighbours", "known swarms", 0},
	{"office", "outbox", 0},
	{"parcel", "delivery", 0},
	{"recompose", "narrowing", 0},
	{"runset", "running set", 0},
	{"seat", "slot, tenant process, tenant session", 0},
	{"shelf", "instance pool", 0},
	{"slack", "GC tuning", 2},
	{"toil", "compile cost", 0},
	{"toolbook", "tools", 0},
	{"vouch", "peer authorization", 0},
}

// standard are names in which an old word is the field's own.
var standard = []string{
	"deadletter", "inflight",
	"signletters",                       // the key sign_letters of a swarm.toml
	"immlane", "immmemlane", "lanetype", // of vector instructions
}

// TestWords keeps old names out of declarations and file names of all modules.
func TestWords(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	see := func(path, name string) {
		plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
		if slices.ContainsFunc(standard, func(s string) bool { return strings.Contains(plain, s) }) {
			return
		}
		for _, word := range split(name) {
			found[word] = append(found[word], path+" "+name)
		}
	}
	eachGoFile(t, func(path string) {
		see(path, strings.TrimSuffix(filepath.Base(path), ".go"))
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, id := range declared(n) {
				see(path, id.Name)
			}
			return true
		})
	})
	for _, o := range old {
		if has := found[o.word]; len(has) > o.most {
			t.Errorf("%q is now %q; %d names have it, at most %d:\n\t%s", o.word, o.now, len(has), o.most, strings.Join(has, "\n\t"))
		} else if len(has) < o.most {
			t.Logf("%q: %d names left; the table allows %d", o.word, len(has), o.most)
		}
	}
}

// declared are the names of types, functions, methods and fields, and those that var
// and const declare.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.StructType:
		return fields(n.Fields)
	case *ast.InterfaceType:
		return fields(n.Methods)
	}
	return nil
}

func fields(list *ast.FieldList) (ids []*ast.Ident) {
	for _, f := range list.List {
		ids = append(ids, f.Names...)
	}
	return ids
}

// split returns the words of a name, in lower case.
func split(name string) (words []string) {
	var word []rune
	runes := []rune(name)
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = nil
	}
	for i, r := range runes {
		upper := unicode.IsUpper(r) && (i == 0 || !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if upper || !unicode.IsLetter(r) {
			end()
		}
		if unicode.IsLetter(r) {
			word = append(word, r)
		}
	}
	end()
	slices.Sort(words)
	return slices.Compact(words)
}

// eachGoFile visits the Go files of all modules, tests and their data too.
func eachGoFile(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "house"}, d.Name()):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".go"):
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
