package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// everywhereOperator is the operator's key in examples/everywhere.
const everywhereOperator = "a-key-of-the-operator-on-this-machine"

// TestDoctorOfBadPartners: skep doctor gateways names the partner of each gateway that does not
// answer, and the MCP server, and no other: one whose key is wrong, and one that is down.
func TestDoctorOfBadPartners(t *testing.T) {
	t.Parallel()
	hive := []string{"amp partner depot-amp", "mcp server depot", "uamp partner depot-uamp"}
	depot := []string{"a2a partner hive-a2a", "acp partner hive-acp", "iacp partner hive-iacp", "uamp partner hive-uamp"}
	t.Run("wrong keys", func(t *testing.T) {
		t.Parallel()
		e := hosttest.StartEverywhere(t, `auth_token = "a-key`, `auth_token = "another-key`, `api_key = "a-key`, `api_key = "another-key`)
		wantFailed(t, e.Hive, hive...)
		wantFailed(t, e.Depot, depot...)
	})
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		e := hosttest.StartEverywhere(t)
		wantFailed(t, e.Hive)
		wantFailed(t, e.Depot)
		e.Depot.Kill()
		wantFailed(t, e.Hive, hive...)
		e.Hive.Kill()
		e.Depot.Start()
		wantFailed(t, e.Depot, depot...)
	})
}

// wantFailed runs skep doctor gateways beside a host until these checks fail and no others: a partner
// that was away is connected to again after a pause.
func wantFailed(t *testing.T, p *hosttest.Process, want ...string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	hosttest.Eventually(t, fmt.Sprintf("the checks %q fail alone", want), func() bool {
		failed, ok := doctor(t, p)
		return ok && slices.Equal(slices.Sorted(maps.Keys(failed)), want)
	})
}

// doctor returns the failed checks of skep doctor gateways, with their details; ok is false while the
// host is not up.
func doctor(t *testing.T, p *hosttest.Process) (failed map[string]string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), hosttest.Program(t), "doctor", "gateways", "-o", "json", "-c", filepath.Join(p.Dir, "swarm.toml"))
	_, port, _ := strings.Cut(p.Addr, ":")
	cmd.Env = append(os.Environ(), "SKEP_URL=https://localhost:"+port, "SKEP_TOKEN="+everywhereOperator, "SSL_CERT_FILE="+filepath.Join(p.Dir, "cert.pem"))
	out, _ := cmd.Output() // a failed check is an error, too
	var said struct {
		Checks []struct {
			Name, Detail string
			Pass         bool
		}
	}
	if json.Unmarshal(out, &said) != nil || len(said.Checks) == 0 {
		return nil, false
	}
	failed = map[string]string{}
	for _, c := range said.Checks {
		if !c.Pass {
			failed[c.Name] = c.Detail
		}
	}
	return failed, true
}
