package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
)

func TestRequestLines(t *testing.T) {
	t.Parallel()
	d := &abi.Descriptor{Requests: []abi.Request{
		{Allow: "llm", Value: json.RawMessage(`["default","large"]`), Reason: "to\nthink", Optional: true},
		{Allow: "secrets", Value: json.RawMessage(`["key"]`), Reason: "to sign"},
	}}
	got := strings.Join(requestLines(d), "\n")
	want := "would like calls to models: default, large: to (1 more line)\nneeds secrets added to its requests: key: to sign"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestImportLines(t *testing.T) {
	t.Parallel()
	got := strings.Join(importLines([]string{"a.one", "a.two", "b.three"}), "\n")
	if want := "a: one, two\nb: three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := importLines(nil); len(got) != 1 || got[0] != "nothing" {
		t.Errorf("got %q", got)
	}
}
