package pages_test

import (
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestUAMPGatewayPage: the page on UAMP begins with whole files, and its program has the
// answer that the page shows.
func TestUAMPGatewayPage(t *testing.T) {
	t.Parallel()
	start, _, found := strings.Cut(hosttest.ReadText(t, "../../../docs/uamp.md"), "\nWhat else the tables may have")
	w := newWalk(t, "swarm.toml", "ask.mjs")
	w.read(start)
	if !found || w.tried != 4 {
		t.Errorf("%d commands", w.tried)
	}
}
