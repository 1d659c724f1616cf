package door_test

import (
	"context"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// TestTraceOfAnAnswer: the answer to an outbox message has the trace of that message, also
// where the gateway has kept a reference to it, unless it bears one of its own.
func TestTraceOfAnAnswer(t *testing.T) {
	t.Parallel()
	const sent, own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for name, c := range map[string]struct{ answers, want string }{"without one": {"", sent}, "with its own": {own, own}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			k.agents.set("boss", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
				if incoming(tn).Type == mail.Response {
					call(tn, mail.ToolTaskComplete, map[string]any{"finish_message": tn.Trace().Parent()})
					return swarm.Outcome{}
				}
				call(tn, mail.ToolSendRequest, map[string]any{"target": "expert@acme", "subject": "?", "body": "how many?"})
				return swarm.Outcome{}
			})
			r := k.postTraced(t, swarm.ParseTrace(sent, ""))
			d := gateway.RefOf(k.next(t, r.Task)).Delivery()
			k.mustAsk(t, acme(), gateway.Ask{Kind: gateway.Answers, ID: "a1", Of: d, Body: "seven", Trace: swarm.ParseTrace(c.answers, "")})
			if a, err := k.swarm.Wait(t.Context(), r); err != nil || a.Body != c.want {
				t.Errorf("the turn of the answer has the trace %q, %v, want %q", a.Body, err, c.want)
			}
		})
	}
}
