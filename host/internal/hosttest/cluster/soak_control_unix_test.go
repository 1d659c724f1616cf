//go:build unix

package cluster_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// controlEnv runs [TestSoakControl].
const controlEnv = "SKEP_SOAK_CONTROL"

// TestSoakControl: without the fence in front of their groups of writes, hosts that stood still or were cut off
// from the server until others had their tasks go on with them, and the soak fails: what may take place once does so
// twice, or tasks are lost. So it is the fence that the soak shows.
func TestSoakControl(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	if os.Getenv(controlEnv) == "" {
		t.Skip("make soak-cluster-control runs it: it takes minutes")
	}
	pgtest.Schema(t) // skips where no server is installed
	soak := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSoakCluster$", "-test.v", "-test.timeout=20m")
	soak.Env = append(os.Environ(), fencelessEnv+"=1")
	out, err := soak.CombinedOutput()
	text := string(out)
	if _, failed := err.(*exec.ExitError); !failed || !strings.Contains(text, "--- FAIL: TestSoakCluster") {
		t.Errorf("the soak does not fail without the fence: %v", err)
	}
	faults, _, _ := strings.Cut(text, "the host at")
	t.Log(faults)
	if strings.Contains(faults, "never: ") || !strings.Contains(faults, "bars are missed") {
		t.Error("the soak fails for another reason than its bars")
	}
	// A turn has run at two hosts, or both have written the same numbers to a task.
	if !strings.Contains(faults, "took place 2 times") && !strings.Contains(text, "duplicate key value violates unique constraint") {
		t.Errorf("no task was worked on by two hosts:\n%s", text)
	}
}
