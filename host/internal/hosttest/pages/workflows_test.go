package pages_test

import (
	"testing"

	"skep/host/internal/hosttest"
)

// TestWorkflowsPage: the files of the page on workflows are whole as they stand, and its
// command has the answer that it shows.
func TestWorkflowsPage(t *testing.T) {
	t.Parallel()
	w := newWalk(t, "swarm.toml", "plan.json")
	w.read(hosttest.ReadText(t, "../../../docs/workflows.md"))
	if w.tried != 1 {
		t.Errorf("%d commands", w.tried)
	}
}
