package capability

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

// TestActionMail (G-060): an action that writes mail leaves one outbox message and one
// request, wherever the host dies; its refusals are those of the first attempt, and an
// action cannot call it.
func TestActionMail(t *testing.T) {
	t.Parallel()
	for dies := range int64(6) {
		h := newHost(t)
		h.forward = open{}
		ask, _ := h.newAction("ask", nil)
		ask.Module = nil
		ask.Mail = func(args json.RawMessage) (swarm.GatewayMail, *abi.Error) {
			if string(args) == `{"n":0}` {
				return swarm.GatewayMail{}, abi.Errorf(abi.CodeDenied, abi.OpAction, "partners", "not that one")
			}
			m := swarm.GatewayMail{Type: "request", Agent: "clerk", Partner: "shop", Subject: "tea", Body: string(args), Info: json.RawMessage(`{"type":"ask"}`)}
			if string(args) == `{"n":2}` {
				m.Subject = "::tea::"
			}
			return m, nil
		}
		write, _ := h.newAction("write", nil)
		write.Module, write.Allow.RetryInDoubt = nil, true
		write.Host = func(_ context.Context, c HostCall) (json.RawMessage, *abi.Error) {
			h.world.reach(c.Key)
			return json.RawMessage(`"written"`), nil
		}
		h.modules["boss"] = guest{"m1", tells(`action {"name":"ask","args":{"n":1}}`, `action {"name":"ask","args":{"n":0}}`, `action {"name":"ask","args":{"n":2}}`, `action {"name":"write","args":{}}`)}
		h.start(dies, true)
		got, err := h.ask()
		if err != nil {
			h.restart()
			got, err = h.ask()
		}
		if err != nil || !strings.HasPrefix(got.Body, `{"request_id":"`) || !strings.Contains(got.Body, "DENIED: not that one; INVALID: subjects that begin") || !strings.HasSuffix(got.Body, `; "written"`) {
			t.Errorf("%d: %v, %s", dies, err, got.Body)
		}
		boxes, err := h.rt.Outboxes(t.Context())
		if err != nil || len(boxes) != 1 {
			t.Fatalf("%d: outboxes %+v, %v", dies, boxes, err)
		}
		d, ok, err := h.rt.NextDelivery(t.Context(), boxes[0])
		p := d.Wrapper.Payload
		if err != nil || !ok || p.Body != `{"n":1}` || p.Recipient().Name != "clerk@shop" || string(p.RoutingInfo) != `{"gateway":{"type":"ask"},"remote_swarm":"shop"}` || !strings.Contains(got.Body, p.ID) {
			t.Errorf("%d: %+v, %v", dies, d, err)
		}
		if _, more, err := h.rt.NextDelivery(t.Context(), boxes[0], d.Wrapper.MessageID); more && err == nil {
			if other, _, _ := h.rt.NextDelivery(t.Context(), boxes[0], d.Wrapper.MessageID); !other.Notice {
				t.Errorf("%d: another message %+v", dies, other)
			}
		}
		h.stop()
	}
}
