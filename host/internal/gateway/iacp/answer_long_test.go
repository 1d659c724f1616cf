package iacp_test

import (
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// TestAnswerTooLong (I-006, I-040, I-052): the asker of a question whose answer is longer than its peer
// takes gets an error_response, on the connection and where a hub has handed the question on.
func TestAnswerTooLong(t *testing.T) {
	t.Parallel()
	for name, hops := range map[string]int{"its own question": 0, "a question with a hop": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			agent := newSlowAgent(s)
			c := iacptest.Begun(s.raw(t))
			exchange(t, c, iacptest.New("handshake", "depot-1", "", map[string]any{"versions": []string{"1.0"}, "features": []string{"ack"}, "max_message_size": 2000}), "handshake_ack")
			exchange(t, c, iacptest.New("auth", "depot-1", "", map[string]any{"method": "token", "token": token}), "auth_result")
			m := slowTask(0)
			m.Conversation, m.Metadata = "7f1a2a44-5f2c-4f6e-9d1f-6e8b2a1c0d3e", map[string]any{"hops": hops}
			exchange(t, c, m, "ack")
			agent.answers <- strings.Repeat("7", 2000)
			if hops > 0 {
				hosttest.Eventually(t, "it is answered", func() bool { return s.outcomeOf(t, m.ID) == gateway.Done })
				d := delivery(m.ID)
				d.Wrapper.Type, d.Answers, d.Wrapper.Payload.ID = mail.Response, m.ID, m.ID
				p, _ := s.rt.Partner("depot")
				if got := s.g.Carry(t.Context(), p, d); got.State != gateway.Refused {
					t.Errorf("carried %+v", got)
				}
			}
			got := read(t, c, "error_response")
			if details, _ := got.Payload["details"].(map[string]any); got.Parent != m.ID || got.Recipient == nil || got.Recipient.ID != "depot-1" || got.Conversation != m.Conversation || details["reason"] != "too_large" {
				t.Errorf("got %s", got.Raw)
			}
			exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
		})
	}
}
