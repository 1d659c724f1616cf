//go:build race

package house_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reader is the one package of ours that tests leave out of the race detector, all but
// its own: TestConcurrentReaders shows that it shares nothing.
const reader = "skep/host/internal/turn/wasm/binary"

// A package that the Makefile leaves out of the race detector hides nothing of others.
// It may define functions of other packages: instantiated generic ones, and wrappers. The
// linker keeps the larger of two copies of a function, so what other packages call
// too must be smaller than the copy with the detector. A copy without it hides accesses,
// and edges, for example of sync.Map.
func TestPackagesWithoutRaceDetector(t *testing.T) {
	t.Parallel()
	flags := raceFlags(t)
	list := []string{"list", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}"}
	for _, f := range flags {
		pattern, _, _ := strings.Cut(strings.TrimPrefix(f, "-gcflags="), "=")
		list = append(list, pattern)
	}
	for line := range strings.Lines(goTool(t, list...)) {
		pkg, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		if module == "skep" && pkg != reader {
			t.Errorf("%s is ours: its races would not be seen; take it out of NORACE in the Makefile", pkg)
			continue
		}
		var with map[string]int
		for name, size := range functionSizes(t, pkg, flags...) {
			if strings.HasPrefix(name, pkg+".") || module != "skep" && strings.HasPrefix(name, module+"/") {
				continue // only this module calls it
			}
			if with == nil { // most packages need not be compiled twice
				with = functionSizes(t, pkg)
			}
			if size >= max(with[name], minCalling) {
				t.Errorf("%s defines %s in %d bytes, %d with the detector: the linker may keep it for all packages; take %s out of NORACE in the Makefile",
					pkg, name, size, with[name], pkg)
			}
		}
	}
}

// minCalling is more bytes than a function takes that calls none, also none of the
// detector; one that calls has a frame and looks at the size of its stack.
const minCalling = 16

// raceFlags are the flags in the Makefile that leave packages out. The tests of the
// reader have no NOREADER.
func raceFlags(t *testing.T) (flags []string) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`\nNORACE = ((?:.*\\\n)*.*)\n`).FindSubmatch(makefile)
	for _, line := range []string{"\nREADER = " + reader + "\n", "\nNOREADER = -gcflags=$(READER)=-race=false\n", "; $(TEST) $(TESTFLAGS) $(READER)\n"} {
		if !bytes.Contains(makefile, []byte(line)) {
			t.Errorf("the Makefile lacks %q: it leaves %s out, but not of its own tests", line, reader)
		}
	}
	if list == nil {
		t.Fatal("the Makefile names no NORACE: this test has nothing to check")
	}
	for _, p := range strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " ")) {
		flags = append(flags, "-gcflags="+p+"=-race=false")
	}
	return append(flags, "-gcflags="+reader+"=-race=false")
}

// functionSizes are the functions that pkg's object file defines, with their sizes in
// bytes. Comparisons of types (type:.eq.) are shared too, but only read.
func functionSizes(t *testing.T, pkg string, gcflags ...string) map[string]int {
	t.Helper()
	object := goTool(t, slices.Concat([]string{"list", "-race"}, gcflags, []string{"-export", "-f", "{{.Export}}", pkg})...)
	sizes := map[string]int{}
	for line := range strings.Lines(goTool(t, "tool", "nm", "-size", "-sort", "none", strings.TrimSpace(object))) {
		before, name, ok := strings.Cut(strings.TrimSpace(line), " T ")
		if !ok || strings.HasPrefix(name, "type:.") {
			continue
		}
		words := strings.Fields(before)
		size, err := strconv.Atoi(words[len(words)-1])
		if err != nil {
			t.Fatalf("go tool nm: %q", line)
		}
		sizes[name] = size
	}
	if len(sizes) == 0 {
		t.Errorf("no functions found in %s", pkg)
	}
	return sizes
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}
