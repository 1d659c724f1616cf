package swarm_test

import (
	"context"
	"testing"

	"skep/host/internal/swarm"
)

// A turn that only waits leaves room for other instances, even with a single
// slot, and has its slot again when it goes on.
func TestWaitingTurnLeavesRoom(t *testing.T) {
	waits, goOn := make(chan struct{}), make(chan struct{})
	h := newHive(t, func(h *hive) {
		h.opt.Turns = 1
		h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			if incoming(turn).Payload.Body == "wait" {
				turn.CPU().Release()
				close(waits)
				<-goOn
				if err := turn.CPU().Acquire(ctx); err != nil {
					return failed(err)
				}
			}
			return script(ctx, turn)
		}
	})
	first := h.mustPost("wait")
	<-waits
	other := h.ask("quick", func(p *swarm.Post) { p.Principal.ID = "bob" })
	if want := "boss got [q] quick"; other.Body != want {
		t.Errorf("beside a turn that waits: %q, want %q", other.Body, want)
	}
	close(goOn)
	if a, want := h.answer(first), "boss got [q] wait"; a.Body != want {
		t.Errorf("the turn that waited: %q, want %q", a.Body, want)
	}
}
