package conform_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/guests"
	"skep/host/internal/turn/wasm"
)

// sources are what sdk/rebuild.sh makes each prebuilt guest from, in its order.
var sources = map[string][]string{
	"c":              {"c/skep.h", "c/conformance/*.c"},
	"rust":           {"rust/Cargo.toml", "rust/conformance/*.rs", "rust/src/*.rs"},
	"assemblyscript": {"assemblyscript/asconfig.json", "assemblyscript/assembly/*.ts", "assemblyscript/conformance/*.ts"},
}

// What lies in the tree was built from the sources in the tree. That it is what a
// compiler makes of them is shown where there is one, by sdk/rebuild.sh check.
func TestPrebuiltGuestsAreOfTheseSources(t *testing.T) {
	t.Parallel()
	root := guests.Root()
	dir := filepath.Join(root, "spec", "conformance", "guests")
	text, err := os.ReadFile(filepath.Join(dir, "BUILT"))
	if err != nil {
		t.Fatal(err)
	}
	built := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 3 {
			built[words[0]] = words[1:3]
		}
	}
	for _, name := range prebuilt {
		wasmBytes, err := os.ReadFile(filepath.Join(dir, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{fmt.Sprintf("%x", sha256.Sum256(wasmBytes)), digest(t, filepath.Join(root, "sdk"), sources[name])}
		if !slices.Equal(built[name], want) {
			t.Errorf("%s.wasm or its sources have changed: run sdk/rebuild.sh\n got %v\nwant %v", name, built[name], want)
		}
		if len(wasmBytes) > 100_000 {
			t.Errorf("%s.wasm has %d bytes", name, len(wasmBytes))
		}
	}
}

func digest(t *testing.T, dir string, patterns []string) string {
	t.Helper()
	var files []string
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(p)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: nothing there, %v", p, err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	h := sha256.New()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(text)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Every SDK has the host's numbers.
func TestSDKsHaveTheHostsNumbers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file     string
		op, code string // patterns with name and number
	}{
		{"c/skep.h", `SKEP_OP_(\w+) = (\d+)`, `(?m)^  SKEP_([A-Z_]+) = (\d+)[, ] `},
		{"rust/src/op.rs", `(?m)^    (\w+) = (\d+), "`, ``},
		{"rust/src/code.rs", ``, `const (\w+): Code = Code\((\d+)\)`},
		{"assemblyscript/assembly/names.ts", `(?s)namespace Op \{.*\}`, `(?s)namespace Code \{.*?function`},
	}
	for _, tt := range tests {
		raw, err := os.ReadFile(filepath.Join(guests.Root(), "sdk", filepath.FromSlash(tt.file)))
		if err != nil {
			t.Fatal(err)
		}
		if tt.op != "" {
			compareNumbers(t, tt.file, numbers(t, string(raw), tt.op), hostOps())
		}
		if tt.code != "" {
			compareNumbers(t, tt.file, numbers(t, string(raw), tt.code), hostCodes())
		}
	}
}

// Every SDK knows the host's words for what became of an emission.
func TestSDKsHaveTheStatusesOfEmit(t *testing.T) {
	t.Parallel()
	for file, pattern := range map[string]string{
		"go/internal/abi/shape.go":         `EmitStatus = "(\w+)"`,
		"c/skep.h":                         `(?m)^  SKEP_EMIT_([A-Z]+)\b`,
		"rust/src/emit.rs":                 `(?m)^    ([A-Z]\w+),$`,
		"assemblyscript/assembly/names.ts": `(?s)namespace Emitted \{.*?\n\}`,
	} {
		raw, err := os.ReadFile(filepath.Join(guests.Root(), "sdk", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		text, re := string(raw), regexp.MustCompile(pattern)
		if re.NumSubexp() == 0 {
			text, re = re.FindString(text), regexp.MustCompile(`const (\w+): i32 = \d`)
		}
		var got []string
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			got = append(got, strings.ToLower(m[1]))
		}
		for _, want := range []abi.EmitStatus{abi.EmitOK, abi.EmitBusy, abi.EmitClosed} {
			if !slices.Contains(got, string(want)) {
				t.Errorf("%s: no %q among %v", file, want, got)
			}
		}
	}
}

// What the READMEs show in these sections stands in examples that are built and
// tested.
func TestReadmesShowTheExamples(t *testing.T) {
	t.Parallel()
	for _, e := range []struct{ language, section, example string }{
		{"go", "Several ops at once", "examples/gather/main.go"},
		{"c", "Several ops at once", "examples/gather.c"},
		{"rust", "Several ops at once", "examples/gather.rs"},
		{"assemblyscript", "Several ops at once", "examples/gather.ts"},
		{"c", "Actions and models", "examples/clerk.c"},
		{"rust", "Actions and models", "examples/clerk.rs"},
		{"assemblyscript", "Actions and models", "examples/clerk.ts"},
	} {
		sdk := filepath.Join(guests.Root(), "sdk", e.language)
		readme, err := os.ReadFile(filepath.Join(sdk, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(filepath.Join(sdk, filepath.FromSlash(e.example)))
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(readme), "\n## "+e.section+"\n")
		_, block, _ := strings.Cut(section, "\n```")
		_, block, _ = strings.Cut(block, "\n")
		block, _, found := strings.Cut(block, "\n```\n")
		if !found || !strings.Contains(unindented(string(source)), unindented(block)) {
			t.Errorf("%s: the README shows what does not stand in %s:\n%s", e.language, e.example, block)
		}
	}
}

func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// numbers reads names and numbers from a source. A pattern without groups finds
// the part of it that has TypeScript's constants.
func numbers(t *testing.T, text, pattern string) map[string]int {
	t.Helper()
	re := regexp.MustCompile(pattern)
	if re.NumSubexp() == 0 {
		text, _, _ = strings.Cut(re.FindString(text), "\n}")
		re = regexp.MustCompile(`const (\w+): i32 = (\d+);`)
	}
	all := map[string]int{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		all[m[1]] = n
	}
	return all
}

func compareNumbers(t *testing.T, file string, got, want map[string]int) {
	t.Helper()
	delete(got, "OK")
	for name, n := range want {
		if g, ok := got[name]; !ok || g != n {
			t.Errorf("%s: %s is %d, the host's %d", file, name, g, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has %d names, the host %d", file, len(got), len(want))
	}
}

func hostOps() map[string]int {
	all := map[string]int{}
	for _, op := range abi.Ops() {
		all[strings.ToUpper(strings.ReplaceAll(op.Name, ".", "_"))] = int(op.Op)
	}
	return all
}

func hostCodes() map[string]int {
	all := map[string]int{}
	for c := abi.CodeInvalid; c <= abi.CodeInternal; c++ {
		all[c.String()] = int(c)
	}
	return all
}

// The smallest agent in C stays below 4 KiB, and works.
func TestSmallestCAgent(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			if guests.ToolchainsRequired() {
				t.Fatal(err)
			}
			t.Skipf("%s is not here: its size is checked where it is", tool)
		}
	}
	dir := t.TempDir()
	sdk := filepath.Join(guests.Root(), "sdk", "c")
	steps := [][]string{
		{"clang", "--target=wasm32", "-Oz", "-mbulk-memory", "-ffreestanding", "-I", sdk, "-c", "-o", dir + "/tiny.o", sdk + "/examples/tiny.c"},
		{"wasm-ld", "--no-entry", "--strip-all", "--compress-relocations", "-z", "stack-size=65536", "-o", dir + "/tiny.wasm", dir + "/tiny.o"},
	}
	for _, s := range steps {
		if out, err := exec.Command(s[0], s[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", s[0], err, out)
		}
	}
	wasmBytes, err := os.ReadFile(dir + "/tiny.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if len(wasmBytes) >= 4<<10 {
		t.Errorf("the smallest agent in C has %d bytes", len(wasmBytes))
	}
	if _, err := engine(t).Load(t.Context(), wasm.Source{Name: "tiny", Wasm: wasmBytes}); err != nil {
		t.Error(err)
	}
}
