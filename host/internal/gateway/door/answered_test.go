package door_test

import (
	"context"
	"fmt"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// The answer to a question shows that the foreign agent has it: with the answer it leaves the outbox,
// and no other message does. After a crash before it was marked as delivered it would be sent again,
// and an agent that was acknowledged does not answer a repeat (G-023, I-026).
func TestAnsweredLeavesTheOutbox(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.agents.set("boss", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if m := incoming(tn); m.Type == mail.Response {
			return swarm.Outcome{}
		}
		for n := range 3 {
			call(tn, mail.ToolSendRequest, map[string]any{"target": "expert@acme", "subject": "?", "body": fmt.Sprint("question ", n)})
		}
		return swarm.Outcome{}
	})
	r := k.post(t)
	box := swarm.OutboxKey{Task: k.next(t, r.Task).Task, Peer: "acme"}
	waiting := func() (sent []swarm.Delivery) {
		var ids []string
		for {
			d, ok, err := k.swarm.NextDelivery(t.Context(), box, ids...)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return sent
			}
			sent, ids = append(sent, d), append(ids, d.Wrapper.MessageID)
		}
	}
	all := waiting()
	if len(all) != 3 {
		t.Fatalf("%d messages wait", len(all))
	}
	for range 2 { // a repeat of the answer changes nothing
		k.mustAsk(t, acme(), gateway.Ask{Kind: gateway.Answers, ID: "a1", Of: &all[1], Body: "seven"})
		left := waiting()
		if len(left) != 2 || left[0].Wrapper.MessageID != all[0].Wrapper.MessageID || left[1].Wrapper.MessageID != all[2].Wrapper.MessageID {
			t.Errorf("after the answer to the second one %d messages wait", len(left))
		}
	}
	if err := k.swarm.MarkDelivered(t.Context(), box, all[1].Wrapper.MessageID, ""); err != nil {
		t.Errorf("the carrier that has brought the answer: %v", err)
	}
	if err := k.swarm.MarkUndeliverable(t.Context(), box, all[1].Wrapper.MessageID, "its attempt ended"); err != nil {
		t.Errorf("an attempt that ended beside its answer: %v", err)
	}
	if dead, err := k.swarm.DeadLetters(t.Context(), swarm.DefaultTenant, 0, 10); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %v, %v", dead, err)
	}
}
