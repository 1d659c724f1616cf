package iacp_test

import (
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// TestCircuitOfWorkflows (I-075, I-095, I-096): an agent that fails is still asked for the state of
// its workflows, and to cancel them; its answers neither close its breaker nor prolong the rest.
func TestCircuitOfWorkflows(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) {
		o.FirstPause = time.Hour
		mill := gatewaytest.Realm("acme", "mill")
		mill.May = gateway.Rights{gateway.MayAsk, gateway.MayWorkflows}
		rt := o.Runtime.(*gatewaytest.Runtime)
		rt.Admit("token-of-mill", mill)
		rt.AddPartner(gateway.Partner{Name: "mill", Tenant: "acme", IDs: []string{"mill-*"}, May: mill.May, Timeout: time.Minute})
	})
	agent := newUnreliableAgent(s)
	c, err := iacptest.Dial(s.addr, "token-of-mill")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for range 5 {
		exchange(t, c, agent.question("mill-1"), "task_response")
	}
	control := func(kind, status string) {
		t.Helper()
		if got := exchange(t, c, iacptest.New(kind, "mill-1", "unreliable", map[string]any{"workflow_id": "w"}), "task_response"); got.Payload["status"] != status {
			t.Errorf("%s has the answer %s", kind, got.Raw)
		}
	}
	control("workflow_status", "failed")
	agent.bad.Store(false)
	control("workflow_status", "completed")
	control("workflow_cancel", "completed")
	for _, m := range []iacptest.Message{agent.question("mill-1"), iacptest.New("workflow_start", "mill-1", "unreliable", map[string]any{"workflow_id": "v"})} {
		if got := exchange(t, c, m, "error_response"); got.Payload["error_code"] != "AGENT_NOT_FOUND" {
			t.Errorf("a %s has the answer %s", m.Type, got.Raw)
		}
	}
	if n := agent.asked.Load(); n != 8 {
		t.Errorf("the agent was asked %d times, want 8", n)
	}
}
