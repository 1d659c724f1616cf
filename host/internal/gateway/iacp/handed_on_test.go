package iacp_test

import (
	"context"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/spec/mail"
)

// TestHandedOn (I-027, I-028, I-057): the answer to a question that a hub has handed on leaves through
// the outbox, since its asker does not learn that this host was killed, and asks no more. The answer
// to a question of the peer itself, and to a repeat of one that was handed on, comes on the connection.
func TestHandedOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options map[string]any
		hops    int
		outbox  bool
	}{
		"its own question": {nil, 0, false}, "a question with a hop": {nil, 1, true}, "a question of a hub": {map[string]any{"hub": true}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := admitRealm(s.rt, "mill", "token-of-mill", c.options)
			replies := make(chan bool, 1)
			s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "clerk"}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
				replies <- turn.Ask.Reply
				return gateway.Answer{Body: "seven"}
			})
			spoke, err := iacptest.Dial(s.addr, "token-of-mill", "ack")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = spoke.Close() })
			if isHub, _ := c.options["hub"].(bool); isHub { // it is told of our agents
				read(t, spoke, "agent_register")
				read(t, spoke, "agent_register")
			}
			m := iacptest.New("task_request", "mill-1", "clerk", map[string]any{"description": "how many?"})
			if c.hops > 0 {
				m.Metadata = map[string]any{"hops": c.hops}
			}
			exchange(t, spoke, m, "ack")
			if got := <-replies; got != c.outbox {
				t.Errorf("the answer leaves through the outbox: %v, want %v", got, c.outbox)
			}
			if !c.outbox {
				if got := read(t, spoke, "task_response"); got.Payload["result"] != "seven" {
					t.Errorf("got %s", got.Raw)
				}
				return
			}
			exchange(t, spoke, iacptest.New("heartbeat", "mill-1", "", map[string]any{}), "heartbeat_ack")
			d := delivery(m.ID)
			d.Wrapper.Type, d.Answers, d.Wrapper.Payload.ID = mail.Response, m.ID, m.ID
			carried := make(chan gateway.Carried, 1)
			go func() { carried <- s.g.Carry(context.WithoutCancel(t.Context()), p, d) }()
			answer := read(t, spoke, "task_response")
			if answer.Payload["result"] != "seven" || answer.Parent != m.ID {
				t.Errorf("got %s", answer.Raw)
			}
			if got := <-carried; got.State != gateway.Taken {
				t.Errorf("carried %+v", got)
			}
			exchange(t, spoke, m, "ack")
			if again := read(t, spoke, "task_response"); again.ID != answer.ID {
				t.Errorf("a repeat got %s", again.Raw)
			}
		})
	}
}
