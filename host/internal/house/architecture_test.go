package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sourceFile is a file that ARCHITECTURE.md names, below host/internal unless it
// begins with another room of the module, and the function that may follow it.
var sourceFile = regexp.MustCompile("`([a-z_/]+/[a-z0-9_]+\\.go)`(?: `([A-Za-z]+)`)?")

// TestArchitecture: the files and functions that ARCHITECTURE.md names exist.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "host", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := sourceFile.FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Errorf("the page names %d files", len(named))
	}
	for _, n := range named {
		path := filepath.Join(root, "host", "internal", n[1])
		if room, _, _ := strings.Cut(n[1], "/"); slices.Contains([]string{"abi", "host", "sdk", "spec"}, room) {
			path = filepath.Join(root, n[1])
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%s: %v", n[1], err)
			continue
		}
		if n[2] != "" && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+n[2]+`[\[(]`).Match(text) {
			t.Errorf("%s has no function %s", n[1], n[2])
		}
	}
}
