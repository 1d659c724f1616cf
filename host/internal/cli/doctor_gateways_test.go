package cli

import (
	"strings"
	"testing"
)

// TestGatewayCheckIsOneLine: names that partners choose add no line to what doctor prints.
func TestGatewayCheckIsOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := newApp(Env{Stdout: &out})
	checks := []gatewayCheck{{Name: "iacp partner depot", Detail: "agents a\npass  key  good\x1b[2K"}}
	if err := a.printChecks(checks, 1, 20); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b[2K") || !strings.Contains(got, `agents a\npass`) {
		t.Errorf("got %q", got)
	}
}
