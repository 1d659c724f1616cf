package iacp_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
)

// TestRegisterFlood (I-036, I-054): a connection has a bounded number of agents, each with a bounded
// registration. One for which there is no place is refused with the reason, and is registered when
// another has left.
func TestRegisterFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t)
	register := func(agent, version string) iacptest.Message {
		return iacptest.New("agent_register", agent, "", map[string]any{"agent_info": map[string]any{"agent_id": agent, "version": version}})
	}
	refused := func(m iacptest.Message, code, reason string) {
		t.Helper()
		got := exchange(t, c, m, "error_response")
		details, _ := got.Payload["details"].(map[string]any)
		if got.Payload["error_code"] != code || details["reason"] != reason || got.Parent != m.ID {
			t.Errorf("got %s", got.Raw)
		}
	}
	refused(register("depot-0", strings.Repeat("1", 16<<10)), "INVALID_MESSAGE_FORMAT", "too_large")
	for n := range 256 {
		exchange(t, c, register(fmt.Sprint("depot-", n), "1"), "agent_register_response")
	}
	exchange(t, c, register("depot-7", "2"), "agent_register_response")
	refused(register("depot-256", "1"), "TIMEOUT", "busy")
	if err := c.Send(iacptest.New("agent_unregister", "depot-9", "", map[string]any{}).Text()); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, register("depot-256", "1"), "agent_register_response")
}
