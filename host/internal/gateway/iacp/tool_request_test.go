package iacp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp/iacptest"
)

// TestNoTool (I-034, I-035, I-073): a tool_request to an agent without actions has a tool_response with
// an error, under its id, and the agent does not get it: with no answer wanted, and where a hub has
// handed it on, too.
func TestNoTool(t *testing.T) {
	t.Parallel()
	for name, meta := range map[string]map[string]any{
		"a request": nil, "no answer": {"requires_response": false}, "handed on": {"hops": 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c := s.dial(t, "ack")
			m := iacptest.New("tool_request", "depot-1", "echo", map[string]any{"tool_name": "add", "parameters": map[string]any{}})
			m.Metadata = meta
			got := exchange(t, c, m, "tool_response")
			fault, _ := got.Payload["error"].(map[string]any)
			if got.Parent != m.ID || got.Recipient == nil || got.Recipient.ID != "depot-1" || got.Payload["status"] != "error" || fault["code"] != "TOOL_NOT_FOUND" {
				t.Errorf("got %s", got.Raw)
			}
			if text := fmt.Sprint(fault["message"]); !strings.Contains(text, `"echo"`) || !strings.Contains(text, "task_request") {
				t.Errorf("got %s", got.Raw)
			}
			if x, err := s.rt.Find(t.Context(), gatewaytest.Realm("acme", "depot"), m.ID); !errors.Is(err, gateway.ErrUnknown) {
				t.Errorf("it was taken as %+v, %v", x, err)
			}
			exchange(t, c, task("and on"), "ack")
		})
	}
}
