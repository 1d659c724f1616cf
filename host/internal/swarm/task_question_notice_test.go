package swarm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// newNoticeHive is a hive whose boss asks a person about each message, and then does nothing more. Messages about
// that stay in their outboxes.
func newNoticeHive(t *testing.T, change ...func(*hive)) *hive {
	return newHive(t, append([]func(*hive){func(h *hive) {
		h.opt.QuestionNotices = true
		h.agents.by["boss"] = func(_ context.Context, t *swarm.Turn) swarm.Outcome {
			if t.PriorAttempt() != nil {
				return swarm.Outcome{}
			}
			return asks(t)
		}
	}}, change...)...)
}

// notice is the oldest outbox message about questions of a task.
func (h *hive) notice(key swarm.TaskKey) (swarm.Delivery, bool) {
	h.t.Helper()
	d, ok, err := h.runtime().NextDelivery(h.t.Context(), swarm.OutboxKey{Task: key, Peer: swarm.QuestionsPeer})
	if err != nil {
		h.t.Fatal(err)
	}
	return d, ok
}

// A task that pauses has a message about its calls in the outbox, without what they ask; a host that
// is started again delivers the same one. The task waits for no delivery: it stalls at once when it
// goes on to nothing. The commit of the answer takes the message out of the outbox, and an attempt that ends then
// changes nothing.
func TestQuestionNotice(t *testing.T) {
	h := newNoticeHive(t)
	key := h.mustPost("planted", task("t")).Task
	eventually(t, "the task pauses", func() bool { return h.record("t").Task.State == swarm.StatePaused })
	first, ok := h.notice(key)
	if !ok || first.Wrapper.Payload.Body != `{"agent":"boss","calls":[{"call_id":"t1.c1","action":"confirm"}]}` || first.GiveUpAt.Sub(first.Since) != 24*time.Hour {
		t.Fatalf("%t, %+v", ok, first)
	}
	h.restart()
	boxes, err := h.runtime().Outboxes(t.Context())
	if again, _ := h.notice(key); err != nil || len(boxes) != 1 || again.Wrapper.MessageID != first.Wrapper.MessageID || again.Wrapper.Payload.Body != first.Wrapper.Payload.Body {
		t.Errorf("%+v, %v: %+v, want %+v", boxes, err, again, first)
	}
	if a := h.ask("", task("t"), results("yes")); a.State != swarm.StateFailed || !strings.Contains(a.Body, "stalled") {
		t.Errorf("the task went on to %+v", a)
	}
	if d, ok := h.notice(key); ok {
		t.Errorf("after the answer %+v", d)
	}
	events := len(h.events("t"))
	if err := h.rt.MarkDelivered(t.Context(), swarm.OutboxKey{Task: key, Peer: swarm.QuestionsPeer}, first.Wrapper.MessageID, ""); err != nil {
		t.Fatal(err)
	}
	rec := h.record("t")
	if len(rec.Task.Peers) != 0 || len(rec.Task.Contributors) != 1 || len(h.events("t")) != events {
		t.Errorf("delivered: %+v", rec.Task)
	}
}

// A message about questions waits until the last of its calls is answered. The end of the task withdraws it, too.
func TestQuestionNoticeIsWithdrawn(t *testing.T) {
	h := newNoticeHive(t, func(h *hive) {
		h.agents.by["boss"] = func(_ context.Context, t *swarm.Turn) swarm.Outcome {
			if t.PriorAttempt() != nil {
				return swarm.Outcome{}
			}
			return asksTwice(t)
		}
	})
	for _, one := range []struct {
		name    string
		resolve func(key swarm.TaskKey) error
	}{
		{"answered", func(key swarm.TaskKey) error {
			if err := h.rt.AnswerQuestion(t.Context(), key, "t1.c1", "yes"); err != nil {
				return err
			}
			if _, ok := h.notice(key); !ok {
				t.Error("the message of a call that waits was withdrawn")
			}
			return h.rt.AnswerQuestion(t.Context(), key, "t1.c2", "yes")
		}},
		{"cancelled", func(key swarm.TaskKey) error { return h.rt.CancelTask(t.Context(), key, "bob") }},
	} {
		key := h.mustPost("x", task(one.name)).Task
		eventually(t, "the task pauses", func() bool { return h.record(one.name).Task.State == swarm.StatePaused })
		if err := one.resolve(key); err != nil {
			t.Fatal(err)
		}
		if d, ok := h.notice(key); ok {
			t.Errorf("%s: %+v", one.name, d)
		}
	}
}

// A message about questions that is given up is a dead letter, and the task waits on; when it is sent
// again it is still for the same calls, and nothing is sent once they are answered.
func TestQuestionNoticeIsGivenUp(t *testing.T) {
	h := newNoticeHive(t)
	key := h.mustPost("x", task("t")).Task
	eventually(t, "the task pauses", func() bool { return h.record("t").Task.State == swarm.StatePaused })
	d, _ := h.notice(key)
	if err := h.rt.MarkUndeliverable(t.Context(), swarm.OutboxKey{Task: key, Peer: swarm.QuestionsPeer}, d.Wrapper.MessageID, "gone"); err != nil {
		t.Fatal(err)
	}
	dead, err := h.rt.DeadLetters(t.Context(), key.Tenant, 0, 10)
	if _, ok := h.notice(key); ok || err != nil || len(dead) != 1 || dead[0].Dead.Reason != "gone" || h.record("t").Task.State != swarm.StatePaused {
		t.Fatalf("%t %+v, %v", ok, dead, err)
	}
	if _, err := h.rt.ResendDeadLetter(t.Context(), key.Tenant, dead[0].ID); err != nil {
		t.Fatal(err)
	}
	if again, ok := h.notice(key); !ok || again.Wrapper.MessageID != d.Wrapper.MessageID {
		t.Errorf("sent again: %t %+v", ok, again)
	}
	if err := h.rt.MarkUndeliverable(t.Context(), swarm.OutboxKey{Task: key, Peer: swarm.QuestionsPeer}, d.Wrapper.MessageID, "gone"); err != nil {
		t.Fatal(err)
	}
	h.ask("", task("t"), results("yes"))
	if _, err := h.rt.ResendDeadLetter(t.Context(), key.Tenant, dead[0].ID); err != nil {
		t.Fatal(err)
	}
	dead, err = h.rt.DeadLetters(t.Context(), key.Tenant, 0, 10)
	if again, ok := h.notice(key); ok || err != nil || len(dead) != 0 {
		t.Errorf("sent again after the answer: %t %+v, dead %+v, %v", ok, again, dead, err)
	}
}

// A task that another swarm handed in has none where it waits, as that swarm's user answers; its owner's
// swarm has one.
func TestQuestionNoticeIsOwners(t *testing.T) {
	p := federate(t, "hive", "depot")
	p.humans("depot")
	p.set(map[string]string{swarm.QuestionsPeer: "wait"})
	for _, h := range p.hives {
		h.opt.QuestionNotices = true
		h.restart()
	}
	key := p.hives["hive"].mustPost(requestTo("math@depot", "b"), task("t")).Task
	eventually(t, "the owner's task pauses", func() bool { return p.hives["hive"].record("t").Task.State == swarm.StatePaused })
	if d, ok := p.hives["hive"].notice(key); !ok || !strings.Contains(d.Wrapper.Payload.Body, `"call_id":"t1.c1@depot"`) {
		t.Errorf("the owner's: %t %+v", ok, d)
	}
	if d, ok := p.hives["depot"].notice(guest("depot", "hive", "t")); ok {
		t.Errorf("the other swarm's: %+v", d)
	}
}

// No agent writes to the peer of questions.
func TestQuestionsPeerIsNoSwarm(t *testing.T) {
	h := newHive(t, func(h *hive) { h.forward = ways{}; h.def.Agents[0].Interswarm = true })
	if a := h.ask(requestTo("people@"+swarm.QuestionsPeer, "x")); !a.State.Ended() {
		t.Errorf("%+v", a)
	}
	boxes, err := h.rt.Outboxes(t.Context())
	if err != nil || len(boxes) != 0 {
		t.Errorf("%+v, %v", boxes, err)
	}
}

// wokenForwarder records which outboxes it is woken for.
type wokenForwarder struct {
	swarm.NoForwarder
	woken chan swarm.OutboxKey
}

func (f wokenForwarder) Wake(box swarm.OutboxKey) { f.woken <- box }

// A host that gains the slot of a paused task delivers what the task has to deliver.
func TestQuestionNoticeIsTakenOver(t *testing.T) {
	f := wokenForwarder{woken: make(chan swarm.OutboxKey, 100)}
	h := newNoticeHive(t, func(h *hive) {
		h.opt.Cluster, h.forward = &sharingHost{sharedBudget: &sharedBudget{}, others: newOtherHosts(1)}, f
	})
	h.gainAll()
	box := swarm.OutboxKey{Task: h.mustPost("planted", task("t")).Task, Peer: swarm.QuestionsPeer}
	if got := <-f.woken; got != box {
		t.Fatalf("woken for %v, want %v", got, box)
	}
	if err := h.rt.Losing(t.Context(), allSlots()); err != nil {
		t.Fatal(err)
	}
	for len(f.woken) > 0 {
		<-f.woken
	}
	h.gainAll()
	if len(f.woken) != 1 || <-f.woken != box {
		t.Errorf("the host has not been woken for %v", box)
	}
}
