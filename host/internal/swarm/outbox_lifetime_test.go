package swarm_test

import (
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Responses and notices of a task's end are tried for a day; a message whose failure
// the task handles is given up after the peer's own time.
func TestPatience(t *testing.T) {
	p := federate(t, "hive", "depot")
	home, depot := p.hives["hive"], p.hives["depot"]
	p.set(map[string]string{"hive": "wait"})
	next := func(h *hive, task swarm.TaskKey, peer string, but ...string) (l swarm.Delivery) {
		eventually(t, "a letter to "+peer, func() (ok bool) {
			var err error
			l, ok, err = h.rt.NextDelivery(t.Context(), swarm.OutboxKey{Task: task, Peer: peer}, but...)
			return ok && err == nil
		})
		return l
	}
	alices := home.mustPost(requestTo("math@depot", "valves?"), task("t")).Task
	answer := next(depot, guest("depot", "hive", "t"), "hive")
	if answer.Wrapper.Type != mail.Response || answer.GiveUpAt.Sub(answer.Since) != 24*time.Hour {
		t.Errorf("the answer %+v", answer)
	}
	if _, ok, err := depot.rt.NextDelivery(t.Context(), swarm.OutboxKey{Task: guest("depot", "hive", "t"), Peer: "hive"}, answer.Wrapper.MessageID); ok || err != nil {
		t.Errorf("a letter that rests comes: %v", err)
	}
	p.set(map[string]string{"hive": "wait", "depot": "wait"})
	if err := home.rt.CancelTask(t.Context(), alices, "alice"); err != nil {
		t.Fatal(err)
	}
	if l := next(home, alices, "depot"); !l.Notice || l.GiveUpAt.Sub(l.Since) != 24*time.Hour {
		t.Errorf("the notice %+v", l)
	}
	for kind, body := range map[mail.Type]string{
		mail.Request:   requestTo("math@depot", "x"),
		mail.Interrupt: `[["send_interrupt",{"target":"math@depot","subject":"s","body":"x"}],["await_message",{}]]`,
		mail.Broadcast: `[["send_broadcast",{"targets":["math@depot"],"subject":"s","body":"x"}]]`,
	} {
		key := home.mustPost(body, task(string(kind))).Task
		if l := next(home, key, "depot"); l.Wrapper.Type != kind || !l.GiveUpAt.IsZero() {
			t.Errorf("the %s %+v", kind, l)
		}
	}
}

// A task whose only hope is a message that is not delivered yet does not stall: its agent
// gets the reason when the message is given up (G-051).
func TestUndeliveredMessageIsNoStall(t *testing.T) {
	p := federate(t, "hive", "depot")
	p.set(map[string]string{"depot": "the peer is gone"})
	a := p.hives["hive"].ask(`[["send_broadcast",{"targets":["math@depot"],"subject":"s","body":"x"}]]`, task("t"))
	if a.State != swarm.StateCompleted || !strings.HasPrefix(a.Body, "boss got [::router_error::] ") || !strings.Contains(a.Body, "the peer is gone") {
		t.Errorf("answer = %+v", a)
	}
}

// A task whose last hope was delivered, and that waits for no answer, stalls by that very
// commit (G-051): with no row and no timer nothing else would look at it.
func TestDeliveredMessageWithoutAnswerStalls(t *testing.T) {
	p := federate(t, "hive", "depot")
	home := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	receipt := home.mustPost(`[["send_broadcast",{"targets":["math@depot"],"subject":"s","body":"x"}]]`, task("t"))
	box := swarm.OutboxKey{Task: receipt.Task, Peer: "depot"}
	var sent swarm.Delivery
	eventually(t, "the broadcast is in the outbox", func() (ok bool) {
		var err error
		sent, ok, err = home.rt.NextDelivery(t.Context(), box)
		return ok && err == nil
	})
	if err := home.rt.MarkDelivered(t.Context(), box, sent.Wrapper.MessageID, ""); err != nil {
		t.Fatal(err)
	}
	if got := home.record("t").Task; got.State != swarm.StateFailed || got.Finish.Subject != mail.SubjectRuntimeError {
		t.Errorf("after the delivery the task is %s, finished with %q", got.State, got.Finish.Subject)
	}
}

// A message that was delivered is never handed out again, also not after a restart.
func TestDeliveredLeavesTheOutbox(t *testing.T) {
	p := federate(t, "hive", "depot")
	home := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	box := swarm.OutboxKey{Task: home.mustPost("x", task("t"), to("math@depot")).Task, Peer: "depot"}
	l, ok, err := home.rt.NextDelivery(t.Context(), box)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := home.rt.MarkDelivered(t.Context(), box, l.Wrapper.MessageID, ""); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"", " after a restart"} {
		if _, ok, err := home.rt.NextDelivery(t.Context(), box); ok || err != nil {
			t.Errorf("the message is handed out again%s, %v", when, err)
		}
		home.restart()
	}
}
