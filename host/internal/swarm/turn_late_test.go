package swarm_test

import (
	"context"
	"slices"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// TestLateTurn: a turn that runs when its task completes goes on. Its mail joins the
// stash, its own completion is logged as a duplicate and answers no post (R-022, R-025,
// G-32).
func TestLateTurn(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) { h.def.Agents[1].CanComplete = true })
	entered, gate := make(chan struct{}), make(chan struct{})
	var told string
	h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		close(entered)
		out := idle(ctx, turn, gate)
		call(turn, mail.ToolSendRequest, obj{"target": "text", "subject": "late", "body": "[]"})
		told = call(turn, mail.ToolTaskComplete, obj{"finish_message": "second"})
		return out
	}
	h.mustPost(`[["send_request",{"target":"math","subject":"s","body":"b"}]]`, task("t"))
	<-entered
	if a := h.ask("first", task("t")); a.Body != "boss got [q] first" {
		t.Errorf("answer %+v", a)
	}
	close(gate)
	eventually(t, "the late turn is committed", func() bool {
		return slices.Contains(names(h.events("t")), "task_complete_call_duplicate")
	})
	if told != "SUCCESS: task already completed" {
		t.Errorf("the late completion was told %q", told)
	}
	snap := h.record("t")
	if len(snap.Rows) != 1 || !snap.Rows[0].Stash || snap.Rows[0].Message.Payload.Subject != "late" || snap.Task.State != swarm.StateCompleted {
		t.Errorf("%s with %+v", snap.Task.State, snap.Rows)
	}
	h.ask("[]", task("t"))
	if !slices.Contains(h.agents.turns(), "text<-math:late") {
		t.Errorf("the late message was not delivered: %q", h.agents.turns())
	}
}
