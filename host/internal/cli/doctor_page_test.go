package cli

import (
	"os"
	"strings"
	"testing"

	"skep/host/internal/diagnosis"
)

// TestDoctorPage: docs/doctor.md has a section for each id, and no other.
func TestDoctorPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if id, is := strings.CutPrefix(line, "### "); is {
			sections[strings.TrimSpace(id)] = true
		}
	}
	for _, id := range diagnosis.IDs() {
		if !sections[id] {
			t.Errorf("the page has no section %s", id)
		}
		delete(sections, id)
	}
	for id := range sections {
		t.Errorf("the page has a section %s, and no finding has that id", id)
	}
}
