package conformance_test

import (
	"testing"

	"skep/spec/conformance"
)

// TestVectors checks the files themselves: every edit applies, every name is
// used once, and there are both kinds of verdict.
func TestVectors(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func() ([]conformance.Vector, error){
		"messages": conformance.Messages, "interswarm": conformance.Interswarm,
	} {
		all, err := load()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen := map[string]bool{}
		valid := 0
		for _, v := range all {
			if seen[v.Name] {
				t.Errorf("%s: %q occurs twice", name, v.Name)
			}
			seen[v.Name] = true
			if v.Fault == "" {
				valid++
			}
		}
		if valid < 5 || len(all)-valid < 20 {
			t.Errorf("%s: %d valid of %d vectors, too few of either kind", name, valid, len(all))
		}
	}
}
