package cluster

import (
	"os/exec"
	"strings"
	"testing"

	"skep/host/internal/store/pgtest"
)

// TestControl: without the fence TestSilent fails, because what a dead host writes is there after
// others have taken its slots. So it is the fence that TestSilent shows.
func TestControl(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the tests of the package once more")
	}
	pgtest.Schema(t) // skips where no server is installed
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-tags=nofence", "-run=^TestSilent$", ".").CombinedOutput()
	if err == nil {
		t.Error("TestSilent passes without the fence")
	}
	for _, want := range []string{"--- FAIL: TestSilent/idle", "a group of a fenced host: <nil>", "row 2 is there 1 times, want 0"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("without the fence TestSilent does not say %q:\n%s", want, out)
		}
	}
}
