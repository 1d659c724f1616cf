package cli

import (
	"testing"

	"skep/host/internal/isolation"
)

func TestIsolationText(t *testing.T) {
	t.Parallel()
	got := isolationText(isolation.Report{Passed: 1, Failed: 1, Attempts: []isolation.Attempt{
		{Name: "list", About: "tasks of another", Pass: true},
		{Name: "kv-read", About: "values of another", Detail: "scope task has \x1b[31mit"},
	}}, style{})
	want := "pass  list              tasks of another\n" +
		"FAIL  kv-read           values of another\n" +
		"                        - scope task has \\x1b[31mit\n" +
		"1 attempt came to nothing, 1 did not\n"
	if got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
