package conformance_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"skep/spec/conformance"
)

// TestForAgents checks the vectors for any agent: inputs are JSON, variants
// differ from what they are made of, names are used once, and nothing that a
// host can refuse an op with is left out.
func TestForAgents(t *testing.T) {
	t.Parallel()
	a, err := conformance.ForAgents()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range slices.Concat(a.Turns, a.Large) {
		if seen[v.Name] {
			t.Errorf("%q occurs twice", v.Name)
		}
		seen[v.Name] = true
		if !json.Valid(v.Input) {
			t.Errorf("%s: the input is no JSON", v.Name)
		}
	}
	for _, v := range a.Turns {
		for _, other := range [][]byte{v.Unknown, v.Elsewhere, v.Secret} {
			if !json.Valid(other) || bytes.Equal(other, v.Input) {
				t.Errorf("%s: a variant is no JSON, or the same: %s", v.Name, other)
			}
		}
		if bytes.Count(v.Secret, []byte(a.Secret)) != 3 || bytes.Contains(v.Input, []byte(a.Secret)) {
			t.Errorf("%s: the secret is not where it belongs", v.Name)
		}
		if len(v.Input) > 8<<10 {
			t.Errorf("%s: %d bytes are not typical", v.Name, len(v.Input))
		}
	}
	for _, v := range a.Large {
		if len(v.Input) < 60_000 {
			t.Errorf("%s: %d bytes are not large", v.Name, len(v.Input))
		}
	}
	if len(a.Turns) < 10 || len(a.Large) < 3 || len(a.Refusals) != 10 || len(a.Answers) < 20 || a.Padding < 256<<10 {
		t.Errorf("%d turns, %d large ones, %d refusals, %d answers, padding of %d bytes",
			len(a.Turns), len(a.Large), len(a.Refusals), len(a.Answers), a.Padding)
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`: `{"a":"b"}`, `{"x":1}`: `{"a":"b","x":1}`, `[]`: `[]`, ``: ``,
	} {
		if got := conformance.With([]byte(in), "a", "b"); string(got) != want {
			t.Errorf("With(%s) = %s, want %s", in, got, want)
		}
	}
}
