package iacp_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/hosttest"
)

// slowAgent is an agent that answers each question when the test lets it.
type slowAgent struct{ answers chan string }

func newSlowAgent(s *site) *slowAgent {
	a := &slowAgent{make(chan string)}
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "slow"}, func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
		select {
		case text := <-a.answers:
			return gateway.Answer{Outcome: gateway.Done, Body: text}
		case <-ctx.Done():
			return gateway.Answer{Outcome: gateway.Cancelled}
		}
	})
	return a
}

func slowTask(limit float64) iacptest.Message {
	m := task("how many?")
	m.Recipient.ID = "slow"
	if limit > 0 {
		m.Metadata = map[string]any{"response_timeout": limit}
	}
	return m
}

// unsentPlace is where the records of answers that were not written are.
var unsentPlace = state.Key{Tenant: "acme", Gateway: "iacp", Realm: "depot", Kind: "push"}

// countUnsent counts the records of answers that were not written.
func (s *site) countUnsent(t *testing.T) int {
	t.Helper()
	list, err := s.rt.State().List(t.Context(), unsentPlace, state.Key{}, 2000)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// cutAfter sends questions on a connection that is cut when they are kept, and waits until
// their answers are kept unsent.
func (s *site) cutAfter(t *testing.T, asked ...iacptest.Message) {
	t.Helper()
	c := s.spoke(t, token, "depot-1")
	for _, m := range asked {
		exchange(t, c, m, "ack")
	}
	_ = c.Close()
	hosttest.Eventually(t, "the answers are kept", func() bool { return s.countUnsent(t) == len(asked) })
}

// TestOwed (I-057): an answer that became ready while the connection of its asker was away, or
// after it was there again, is pushed on the next one, in the order of the questions. One that
// is not acknowledged comes again, and one that is does not.
func TestOwed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := newSlowAgent(s)
	asked := []iacptest.Message{slowTask(0), slowTask(0), slowTask(0)}
	s.cutAfter(t, asked...)
	for n := range 3 {
		agent.answers <- fmt.Sprint(n)
	}
	hosttest.Eventually(t, "all are answered", func() bool {
		for _, m := range asked {
			x, err := s.rt.Find(t.Context(), gatewaytest.Realm("acme", "depot"), m.ID)
			if _, ok, lookErr := s.rt.Look(t.Context(), x); err != nil || lookErr != nil || !ok {
				return false
			}
		}
		return true
	})
	c := s.spoke(t, token, "depot-1")
	if got := readSilently(t, c, "task_response"); got.Parent != asked[0].ID || got.Recipient.ID != "depot-1" {
		t.Errorf("got %s", got.Raw)
	}
	_ = c.Close() // without an acknowledgement
	c = s.spoke(t, token, "depot-1")
	for _, m := range asked {
		got := read(t, c, "task_response")
		if got.Parent != m.ID || got.Payload["status"] != "completed" {
			t.Errorf("got %s, want the answer to %s", got.Raw, m.ID)
		}
	}
	hosttest.Eventually(t, "no answer is unsent", func() bool { return s.countUnsent(t) == 0 })

	later := slowTask(0)
	s.cutAfter(t, later)
	c = s.spoke(t, token, "depot-1")
	exchange(t, c, later, "ack") // a repeat gets the same answer
	agent.answers <- "now"
	got := read(t, c, "task_response")
	if got.Parent != later.ID || got.Payload["result"] != "now" {
		t.Errorf("got %s", got.Raw)
	}
	hosttest.Eventually(t, "no answer is unsent", func() bool { return s.countUnsent(t) == 0 })
}

// endAnswerTime ends the time of the one answer that is unsent.
func (s *site) endAnswerTime(t *testing.T) {
	t.Helper()
	list, err := s.rt.State().List(t.Context(), unsentPlace, state.Key{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.Change(t.Context(), s.rt.State(), list[0].Key, time.Hour, func(o *map[string]any) error {
		(*o)["by"] = time.Now().Add(-time.Second)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestOwedTooLate (I-004, I-057): a question whose time is over while its asker is away is
// called off, and that is pushed.
func TestOwedTooLate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newSlowAgent(s)
	m := slowTask(600)
	s.cutAfter(t, m)
	s.endAnswerTime(t)
	c := s.spoke(t, token, "depot-1")
	if got := read(t, c, "error_response"); got.Parent != m.ID || got.Payload["error_code"] != "TIMEOUT" {
		t.Errorf("got %s", got.Raw)
	}
}

// flaky is a store that fails each other write and list.
type flaky struct {
	state.Store
	calls atomic.Int64
}

func (f *flaky) fails() error {
	if f.calls.Add(1)%2 == 1 {
		return errors.New("the disk is full")
	}
	return nil
}

// Put implements [state.Store].
func (f *flaky) Put(ctx context.Context, r state.Record) (int64, error) {
	if err := f.fails(); err != nil {
		return 0, err
	}
	return f.Store.Put(ctx, r)
}

// List implements [state.Store].
func (f *flaky) List(ctx context.Context, of, after state.Key, limit int) ([]state.Record, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.List(ctx, of, after, limit)
}

// TestOwedStoreFails (I-057): a store that fails for a moment keeps no answer from its asker.
func TestOwedStoreFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) {
		o.FirstPause = time.Millisecond
		o.Runtime = stored{o.Runtime, &flaky{Store: o.Runtime.State()}}
	})
	agent := newSlowAgent(s)
	m := slowTask(0)
	s.cutAfter(t, m)
	agent.answers <- "17"
	c := s.spoke(t, token, "depot-1")
	if got := read(t, c, "task_response"); got.Parent != m.ID {
		t.Errorf("got %s", got.Raw)
	}
}
