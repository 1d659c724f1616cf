package gateway_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// sharing is a swarm whose agent shares contexts with the partner mesh.
const sharing = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["make_context", "read_context", "change_context"]
[actions.make_context]
source = "gateway:amp/context_create"
partners = ["mesh"]
[actions.read_context]
source = "gateway:amp/context_get"
partners = ["mesh"]
[actions.change_context]
source = "gateway:amp/context_update"
partners = ["mesh"]
[gateways.amp.partners.mesh]
ids = ["agent-*"]
may = ["contexts"]
[[auth.keys]]
id = "mesh"
role = "agent"
key = "the-token-of-mesh-at-hive"
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// TestContextActions (M-056, G-060): a context that an agent here makes by an action is changed by
// the partner's agent, and read by another task of the swarm.
func TestContextActions(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, sharing)
	made := s.Do(hosttest.AliceKey, "t-1", hosttest.Step{"make_context", hosttest.Args{"shared_memory": hosttest.Args{"stock": 7}, "write": []string{"agent-1"}}})
	id := regexp.MustCompile(`mesh:[0-9a-f-]{36}`).FindString(made)
	if id == "" {
		t.Fatalf("made %s", made)
	}
	r := ampControl(t, s, "the-token-of-mesh-at-hive", "context-management", amptest.Object{
		"operation": "update", "context_id": id, "context": amptest.Object{"shared_memory": amptest.Object{"ordered": 40}},
	})
	if r.Status != http.StatusOK {
		t.Fatalf("the partner's change: %d %s", r.Status, r.Text)
	}
	if got := s.Do(hosttest.AliceKey, "t-2", hosttest.Step{"read_context", hosttest.Args{"context": id}}); !strings.Contains(got, "ordered") || !strings.Contains(got, "40") {
		t.Errorf("read %s", got)
	}
	if got := s.Do(hosttest.AliceKey, "t-3", hosttest.Step{"change_context", hosttest.Args{"context": id, "if_version": 1_000_000_000}}); !strings.Contains(got, "VERSION_CONFLICT") {
		t.Errorf("with another version: %s", got)
	}
}
