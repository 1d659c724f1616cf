package iacp_test

import (
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp/iacptest"
)

// TestOneNameInTwoSwarms (I-036, I-037, I-071): agents of two swarms with one name have ids of their
// own, by which each is asked. An id that ends in @ names none.
func TestOneNameInTwoSwarms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "nest", Name: "echo"}, gatewaytest.Echo)
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "nest", Name: "single"}, gatewaytest.Echo)
	c := s.dial(t)
	found := exchange(t, c, iacptest.New("agent_discover", "depot-1", "", map[string]any{"discovery_type": "all"}), "agent_discover_response")
	for _, id := range []string{"echo@hive", "echo@nest", "single"} {
		if !strings.Contains(found.Raw, `"agent_id":"`+id+`"`) {
			t.Errorf("no %s in %s", id, found.Raw)
		}
		m := task("to " + id)
		m.Recipient.ID = id
		if got := exchange(t, c, m, "task_response"); got.Sender.ID != id || got.Payload["result"] != "to "+id {
			t.Errorf("%s: %s", id, got.Raw)
		}
	}
	m := task("to no swarm")
	m.Recipient.ID = "single@"
	if got := exchange(t, c, m, "error_response"); got.Payload["error_code"] != "AGENT_NOT_FOUND" || got.Payload["error_message"] != `there is no agent "single@": after the @ comes the name of a swarm; an agent alone is "single"` {
		t.Errorf("no swarm: %s", got.Raw)
	}
	if strings.Contains(found.Raw, `"agent_id":"echo"`) {
		t.Errorf("two agents have one id: %s", found.Raw)
	}
}
