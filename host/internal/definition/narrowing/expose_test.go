package narrowing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exposing is a file whose boss is exposed through two gateways.
var exposing = strings.Replace(grants, `comm_targets = ["math"]`, "comm_targets = [\"math\"]\nexpose = [\"a2a\", \"mcp\"]", 1) + "[gateways.a2a]\n[gateways.mcp]\n"

// A definition over the network exposes an agent through gateways of the file's own
// agent, through fewer of them, or not at all.
func TestExposeMayOnlyNarrow(t *testing.T) {
	t.Parallel()
	f := testFile(t, exposing)
	const boss, math = `"source":"file:file_test.go","expose":["mcp"]`, `"expose":["mcp"],"source":"file:file_test.go"`
	x, err := f.Admit(single(boss))
	if err != nil || !cmp.Equal([]string{"mcp"}, x.Agents[0].Expose) {
		t.Errorf("%v, %+v", err, x.Agents)
	}
	if x, err = f.Admit(single(`"source":"file:file_test.go"`)); err != nil || len(x.Agents[0].Expose) != 0 {
		t.Errorf("%v, %+v", err, x.Agents)
	}
	for agent, want := range map[string]string{
		strings.Replace(boss, "mcp", "uamp", 1): `agents.x.expose: the operator's file does not grant "uamp" to "boss", which runs on this module`,
		strings.Replace(boss, "mcp", "mpc", 1):  `unknown gateway "mpc"`,
	} {
		if _, err := f.Admit(single(agent)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", agent, err, want)
		}
	}
	if _, err := f.Admit(beside(math)); err == nil || !strings.Contains(err.Error(), `"mcp" to "math"`) {
		t.Errorf("the agent of a name that the file does not expose: %v", err)
	}
}

// A task's older definition exposes what the file of today does, and nothing of an agent
// that the file has no more.
func TestNarrowExpose(t *testing.T) {
	t.Parallel()
	own := testFile(t, exposing).Own()
	less := testFile(t, strings.Replace(exposing, `["a2a", "mcp"]`, `["mcp"]`, 1))
	if got := less.Narrow(own, true).Agents[0].Expose; !cmp.Equal([]string{"mcp"}, got) {
		t.Errorf("exposed: %v", got)
	}
	less.Modules = map[string]string{"boss": "another", "math": "another"}
	if got := less.Narrow(own, false).Agents[0].Expose; len(got) != 0 {
		t.Errorf("exposed without an agent of the file: %v", got)
	}
	if got := own.Agents[0].Expose; len(got) != 2 {
		t.Errorf("what was narrowed has changed: %v", got)
	}
}
