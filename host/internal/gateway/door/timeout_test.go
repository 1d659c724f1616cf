package door_test

import (
	"context"
	"testing"
	"testing/synctest"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// TestTimedOutExchange: when the time of a task is over that waits for a partner, its
// asker gets a timeout without the text of the host, and so does each later reader.
func TestTimedOutExchange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		for agent, target := range map[string]string{"boss": "x@acme", "calc": "x@shop"} {
			k.agents.set(agent, func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
				call(tn, mail.ToolSendRequest, map[string]any{"target": target, "subject": "s", "body": "how many?"})
				return swarm.Outcome{}
			})
		}
		for name, x := range map[string]gateway.Exchange{
			"a realm": k.mustAsk(t, acme(), ask("m1", "calc", "x")),
			"a user":  k.mustAsk(t, alice(), ask("m2", "boss", "x")),
		} {
			got, err := k.Wait(t.Context(), x)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			wantAnswer(t, got, gateway.TimedOut, "The time for the request is over.")
			if got.Subject != "" {
				t.Errorf("%s is told %q", name, got.Subject)
			}
			if again, ok, err := k.Look(t.Context(), x); !ok || err != nil || again.Outcome != gateway.TimedOut {
				t.Errorf("%s looks again: %+v, %v, %v", name, again, ok, err)
			}
		}
	})
}
