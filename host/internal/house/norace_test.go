//go:build race

package house_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A package that the Makefile leaves out of the race detector defines no function of
// another package: the linker keeps one copy of an instantiated generic function, and a
// copy without the detector hides edges, for example of sync.Map.
func TestPackagesWithoutRaceDetector(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`-gcflags=([^ =]+)=-race=false`).FindAllSubmatch(makefile, -1)
	if len(flags) == 0 {
		t.Fatal("the Makefile leaves no package out: this test has nothing to check")
	}
	for _, flag := range flags {
		pkg := string(flag[1])
		for _, symbol := range functions(t, pkg, string(flag[0])) {
			if !strings.HasPrefix(symbol, pkg+".") {
				t.Errorf("%s defines %s, which the linker may keep for all packages: take %s out of RACE in the Makefile", pkg, symbol, pkg)
			}
		}
	}
}

// functions lists the functions that pkg's object file defines. Comparisons of types
// (type:.eq.) are shared too, but only read.
func functions(t *testing.T, pkg, gcflags string) (names []string) {
	t.Helper()
	object := goTool(t, "list", "-race", gcflags, "-export", "-f", "{{.Export}}", pkg)
	for line := range strings.Lines(goTool(t, "tool", "nm", "-sort", "none", strings.TrimSpace(object))) {
		if _, name, ok := strings.Cut(line, " T "); ok && !strings.HasPrefix(name, "type:.") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if len(names) == 0 {
		t.Errorf("no functions found in %s", pkg)
	}
	return names
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
