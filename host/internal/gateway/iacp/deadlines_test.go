package iacp_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/hosttest"
)

// countDeadlines counts the records of the deadlines of questions.
func (s *site) countDeadlines(t *testing.T) int {
	t.Helper()
	list, err := s.rt.State().List(t.Context(), state.Key{Tenant: "acme", Gateway: "iacp", Realm: "depot", Kind: "deadline"}, state.Key{}, 2000)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestHandedOnKilled (I-004, I-057): a question that a hub has handed on is called off when its time is
// over, once, by the host that starts after the one that has accepted it was killed, also where the store
// fails for a moment and no peer connects again.
func TestHandedOnKilled(t *testing.T) {
	t.Parallel()
	killed := newSite(t)
	newSlowAgent(killed)
	c := killed.spoke(t, token, "depot-1")
	m := handedOnTask(600)
	exchange(t, c, m, "ack")
	if n := killed.countDeadlines(t); n != 1 {
		t.Fatalf("%d deadlines are recorded with the acknowledgement", n)
	}
	killed.endDeadlines(t)
	killed.rt.FailNext("Cancel", errors.New("the store fails"))
	next := newSite(t, func(o *iacp.Options) { // it has what the killed one has kept
		o.Runtime, o.Partners = killed.rt, func() []gateway.Partner {
			p, _ := killed.rt.Partner("depot")
			return []gateway.Partner{p}
		}
		o.FirstPause = time.Millisecond
	})
	hosttest.Eventually(t, "it is called off", killed.isCancelled(t, m.ID))
	hosttest.Eventually(t, "the record is gone", func() bool { return killed.countDeadlines(t) == 0 })
	if n := next.g.Health().Connections; n != 0 {
		t.Errorf("%d connections", n)
	}
	got := killed.carriedAnswer(t, c, m.ID)
	if failure, _ := got.Payload["error"].(map[string]any); got.Parent != m.ID || failure["code"] != "CANCELLED" {
		t.Errorf("got %s", got.Raw)
	}
}

// endDeadlines lets the time of the recorded questions be over.
func (s *site) endDeadlines(t *testing.T) {
	t.Helper()
	of := state.Key{Tenant: "acme", Gateway: "iacp", Realm: "depot", Kind: "deadline"}
	err := state.Each(t.Context(), s.rt.State(), of, func(r state.Record) error {
		var due map[string]string
		if err := json.Unmarshal(r.Value, &due); err != nil {
			return err
		}
		due["by"] = time.Now().Add(-time.Second).Format(time.RFC3339Nano)
		_, err := state.Save(t.Context(), s.rt.State(), r.Key, r.Version, due, time.Hour)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeadlineRecords (I-004, I-057): the deadline of a handed-on question is recorded until it has its
// answer. One without a time, and one that is refused, leave none; one whose connection has ended is
// called off by the host in time.
func TestDeadlineRecords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := newSlowAgent(s)
	c := s.spoke(t, token, "depot-1")
	endless := slowTask(0)
	endless.Metadata = map[string]any{"hops": 1}
	for _, m := range []iacptest.Message{endless, handedOnTask(600)} {
		exchange(t, c, m, "ack")
	}
	if n := s.countDeadlines(t); n != 1 {
		t.Errorf("%d deadlines are recorded for one question with a time", n)
	}
	agent.answers <- "one"
	agent.answers <- "two"
	hosttest.Eventually(t, "no deadline is recorded", func() bool { return s.countDeadlines(t) == 0 })
	s.rt.FailNext("Ask", gateway.ErrBusy)
	exchange(t, c, handedOnTask(600), "error_response")
	if n := s.countDeadlines(t); n != 0 {
		t.Errorf("%d deadlines of a refused question", n)
	}
	late := handedOnTask(2)
	exchange(t, c, late, "ack")
	_ = c.Close()
	hosttest.Eventually(t, "it is called off", s.isCancelled(t, late.ID))
	hosttest.Eventually(t, "no deadline is recorded", func() bool { return s.countDeadlines(t) == 0 })
}
