package iacp_test

import (
	"context"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// handedOnTask is a slow task with a hop.
func handedOnTask(limit float64) iacptest.Message {
	m := slowTask(0)
	m.Metadata = map[string]any{"hops": 1, "response_timeout": limit}
	return m
}

// carriedAnswer lets the outbox send the answer to a question when it is there, and returns what the
// peer got.
func (s *site) carriedAnswer(t *testing.T, c *iacptest.Conn, question string) iacptest.Message {
	t.Helper()
	hosttest.Eventually(t, "it is answered", func() bool { return s.outcomeOf(t, question) != "" })
	p, _ := s.rt.Partner("depot")
	d := delivery(question)
	d.Wrapper.Type, d.Answers, d.Wrapper.Payload.ID = mail.Response, question, question
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- s.g.Carry(context.WithoutCancel(t.Context()), p, d) }()
	got := read(t, c, "task_response")
	if state := (<-carried).State; state != gateway.Taken {
		t.Errorf("carried %v", state)
	}
	return got
}

// outcomeOf returns how a question has ended, empty where it has not.
func (s *site) outcomeOf(t *testing.T, question string) gateway.Outcome {
	t.Helper()
	x, err := s.rt.Find(t.Context(), gatewaytest.Realm("acme", "depot"), question)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := s.rt.Look(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	return a.Outcome
}

func (s *site) isCancelled(t *testing.T, question string) func() bool {
	return func() bool { return s.outcomeOf(t, question) == gateway.Cancelled }
}

// TestHandedOnLate (I-004, I-028): a question that a hub has handed on, and whose time is over, has one
// answer, which leaves through the outbox and has the code TIMEOUT.
func TestHandedOnLate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newSlowAgent(s)
	c := s.spoke(t, token, "depot-1")
	m := handedOnTask(0.01)
	exchange(t, c, m, "ack")
	hosttest.Eventually(t, "it is called off", s.isCancelled(t, m.ID))
	got := s.carriedAnswer(t, c, m.ID)
	if failure, _ := got.Payload["error"].(map[string]any); got.Parent != m.ID || failure["code"] != "TIMEOUT" {
		t.Errorf("got %s", got.Raw)
	}
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
}

// TestHandedOnCut (I-004, I-057): a question that a hub has handed on is called off when its time is
// over, although its connection has ended before.
func TestHandedOnCut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newSlowAgent(s)
	m := handedOnTask(600)
	s.cutAfter(t, m)
	s.endAnswerTime(t)
	c := s.spoke(t, token, "depot-1")
	hosttest.Eventually(t, "it is called off", s.isCancelled(t, m.ID))
	hosttest.Eventually(t, "no answer is unsent", func() bool { return s.countUnsent(t) == 0 })
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
}

// TestHandedOnReload (I-028): a question whose partner becomes a hub, or is none any more, before the
// answer has the answer once, where it was to come when the question was taken.
func TestHandedOnReload(t *testing.T) {
	t.Parallel()
	hub, none := map[string]any{"hub": true}, map[string]any(nil)
	for name, change := range map[string]struct{ before, after map[string]any }{"to a hub": {none, hub}, "to none": {hub, none}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p, _ := s.rt.Partner("depot")
			agent := newSlowAgent(s)
			c := s.spoke(t, token, "depot-1")
			p.Options = change.before
			s.rt.AddPartner(p)
			m := slowTask(0)
			exchange(t, c, m, "ack")
			p.Options = change.after
			s.rt.AddPartner(p)
			agent.answers <- "17"
			if change.before == nil {
				if got := read(t, c, "task_response"); got.Payload["result"] != "17" {
					t.Errorf("got %s", got.Raw)
				}
			} else if got := s.carriedAnswer(t, c, m.ID); got.Payload["result"] != "17" {
				t.Errorf("got %s", got.Raw)
			}
			exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
		})
	}
}

// TestHandedOnAskedAgain (I-028): a question that a hub has handed on, and that is asked again on the
// connection while it has no answer, has it there too, besides the one of the outbox.
func TestHandedOnAskedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := newSlowAgent(s)
	c := s.spoke(t, token, "depot-1")
	m := handedOnTask(600)
	exchange(t, c, m, "ack")
	exchange(t, c, m, "ack")
	agent.answers <- "17"
	if got := read(t, c, "task_response"); got.Parent != m.ID || got.Payload["result"] != "17" {
		t.Errorf("got %s", got.Raw)
	}
}
