package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// positions lists every node as "path key value", positions as line:column.
func positions(text string) []string {
	root, _, _ := scan(text)
	src := newSource("", text)
	var out []string
	var walk func(sp location)
	walk = func(sp location) {
		if sp.path != "" {
			kl, kc := src.pos(sp.node.key)
			vl, vc := src.pos(sp.node.value)
			out = append(out, sp.path+" "+lineCol(kl, kc)+" "+lineCol(vl, vc))
		}
		for _, name := range sp.node.names {
			walk(sp.child(name))
		}
		for i := range sp.node.elems {
			walk(sp.elem(i))
		}
	}
	walk(location{node: root})
	return out
}

func lineCol(line, col int) string {
	return strings.Join([]string{counts.print(int64(line)), counts.print(int64(col))}, ":")
}

func TestScan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"pair", "a = 1", "a 1:1 1:5"},
		{"second line, indented", "\n  a=  1", "a 2:3 2:7"},
		{"header", "[a]\nb = 1", "a 1:2 1:2|a.b 2:1 2:5"},
		{"spaced header", "[ a . b ]", "a 1:3 1:3|a.b 1:7 1:7"},
		{"dotted key", "a.b.c = 1", "a 1:1 1:1|a.b 1:3 1:3|a.b.c 1:5 1:9"},
		{"quoted keys", `"a.b" = 1` + "\n" + `'c d'."" = 2`, `"a.b" 1:1 1:9|"c d" 2:1 2:1|"c d"."" 2:7 2:12`},
		{"escaped key", `"\u00e9\x41\t" = 1`, `"éA\t" 1:1 1:18`},
		{"header after its child", "[a.b]\n[a]", "a 2:2 2:2|a.b 1:4 1:4"},
		{"array", "a = [ 1,\n 2 ]", "a 1:1 1:5|a[0] 1:7 1:7|a[1] 2:2 2:2"},
		{"nested array", "a = [[1], []]", "a 1:1 1:5|a[0] 1:6 1:6|a[0][0] 1:7 1:7|a[1] 1:11 1:11"},
		{"inline table", "a = { b = 1, c.d = 2 }", "a 1:1 1:5|a.b 1:7 1:11|a.c 1:14 1:14|a.c.d 1:16 1:20"},
		{"inline table over lines", "a = { # c\n b = 1,\n}\nd = 1", "a 1:1 1:5|a.b 2:2 2:6|d 4:1 4:5"},
		{"array of inline tables", "a = [{b=1}, {b=2}]", "a 1:1 1:5|a[0] 1:6 1:6|a[0].b 1:7 1:9|a[1] 1:13 1:13|a[1].b 1:14 1:16"},
		{"array of tables", "[[a]]\nb=1\n[[a]]\nb=2", "a 1:3 1:3|a[0] 1:1 1:1|a[0].b 2:1 2:3|a[1] 3:1 3:1|a[1].b 4:1 4:3"},
		{"table in array of tables", "[[a]]\n[a.b]\nc=1\n[[a]]\n[a.b]\nc=2",
			"a 1:3 1:3|a[0] 1:1 1:1|a[0].b 2:4 2:4|a[0].b.c 3:1 3:3|a[1] 4:1 4:1|a[1].b 5:4 5:4|a[1].b.c 6:1 6:3"},
		{"array in array of tables", "[[a]]\n[[a.b]]\n[[a.b]]", "a 1:3 1:3|a[0] 1:1 1:1|a[0].b 2:5 2:5|a[0].b[0] 2:1 2:1|a[0].b[1] 3:1 3:1"},
		{"comments", "# [x]\na = 1 # b = 2\n[c] # d\n", "a 2:1 2:5|c 3:2 3:2"},
		{"string with marks", `a = "]}#,\"" ` + "\nb = 1", "a 1:1 1:5|b 2:1 2:5"},
		{"literal string", `a = '\'` + "\nb = 1", "a 1:1 1:5|b 2:1 2:5"},
		{"multi-line string", "a = \"\"\"\nb = 1\n\\\"\"\" \"\" \"\"\"\"\"\nc = 1", "a 1:1 1:5|c 4:1 4:5"},
		{"multi-line literal", "a = '''\nb = 1\n\\'''''\nc = 1", "a 1:1 1:5|c 4:1 4:5"},
		{"empty strings", "a = \"\"\nb = ''\nc = \"\"\"\"\"\"\nd = ''''''\ne = 1", "a 1:1 1:5|b 2:1 2:5|c 3:1 3:5|d 4:1 4:5|e 5:1 5:5"},
		{"date with space", "a = 1979-05-27 07:32:00\nb = [1979-05-27 07:32:00, 2]", "a 1:1 1:5|b 2:1 2:5|b[0] 2:6 2:6|b[1] 2:27 2:27"},
		{"CRLF", "a = 1\r\nb = [\r\n2]\r\n", "a 1:1 1:5|b 2:1 2:5|b[0] 3:1 3:1"},
		{"characters", "é = 1\n\"é\" = { é = 2 }", ""},
		{"characters in strings", "a = [\"é\", 1]", "a 1:1 1:5|a[0] 1:6 1:6|a[1] 1:11 1:11"},
		{"broken", "a = 1\nb =\n= c\nd = 1", "a 1:1 1:5|b 2:1 2:4"},
	} {
		if got := strings.Join(positions(tt.text), "|"); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// checkIndex holds the scanner to the parser: every key that the parser reports
// for a text it accepts has a position, and so has every value.
func checkIndex(t *testing.T, text string) {
	t.Helper()
	src := newSource("f", text)
	if src.checkText() != nil {
		return
	}
	root, _, limit := scan(text)
	if limit != "" {
		return
	}
	values, meta, err := decode(text)
	if err != nil {
		return
	}
	for _, key := range meta.Keys() {
		if !reaches(root, key) {
			t.Errorf("no position for key %q", []string(key))
		}
	}
	checkValues(t, root, values)
}

// reaches follows a key as the parser writes it: without the indices of arrays.
func reaches(n *node, key []string) bool {
	if len(key) == 0 {
		return true
	}
	if c := n.child(key[0]); c != nil && reaches(c, key[1:]) {
		return true
	}
	for _, e := range n.elems {
		if reaches(e, key) {
			return true
		}
	}
	return false
}

func checkValues(t *testing.T, n *node, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			checkValues(t, n.child(key), sub)
		}
	case []map[string]any:
		for i, sub := range v {
			checkValues(t, n.elem(i), sub)
		}
	case []any:
		for i, sub := range v {
			checkValues(t, n.elem(i), sub)
		}
	}
	if n == nil {
		t.Errorf("no position for the value %v", v)
	}
}

func TestIndexOfFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkIndex(t, string(text))
	}
}

func TestPos(t *testing.T) {
	t.Parallel()
	src := newSource("f", "ab\n\nécé\n")
	var got []string
	for _, off := range []int{-1, 0, 2, 3, 4, 6, 7, 9, 10, 99} {
		got = append(got, lineCol(src.pos(off)))
	}
	want := []string{"1:1", "1:1", "1:3", "2:1", "3:1", "3:2", "3:3", "3:4", "4:1", "4:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions mismatch (-want +got):\n%s", diff)
	}
}
