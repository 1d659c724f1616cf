package conformance_test

import (
	"encoding/json"
	"testing"

	"skep/spec/conformance"
)

// TestTurns checks the vectors for agents: names are used once, inputs are JSON,
// and every vector that is committed or fails has what is written.
func TestTurns(t *testing.T) {
	t.Parallel()
	all, err := conformance.Turns()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	ends := map[string]int{}
	for _, v := range all {
		if seen[v.Name] {
			t.Errorf("%q occurs twice", v.Name)
		}
		seen[v.Name] = true
		ends[v.Want.Exit]++
		if !json.Valid(v.Input) {
			t.Errorf("%s: the input is no JSON: %s", v.Name, v.Input)
		}
		if v.Want.Exit == "failed" && len(v.Want.Output) == 0 {
			t.Errorf("%s: fails, and does not say how", v.Name)
		}
	}
	if ends[""] < 30 || ends["failed"] < 10 || ends["abort"] == 0 || ends["output"] == 0 {
		t.Errorf("too few of some end: %v", ends)
	}
}
