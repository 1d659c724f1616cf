package iacp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/hosttest"
	"skep/host/internal/swarm"
)

// TestAnswerUnacknowledged (I-026, I-057): an answer that was written and not acknowledged comes
// again on the next connection, and one that was acknowledged does not.
func TestAnswerUnacknowledged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m := task("hello")
	c := s.spoke(t, token, "depot-1")
	exchange(t, c, m, "ack")
	lost := readSilently(t, c, "task_response")
	_ = c.Close()
	hosttest.Eventually(t, "the answer is kept", func() bool { return s.countUnsent(t) == 1 })
	c = s.spoke(t, token, "depot-1")
	again := read(t, c, "task_response")
	if again.Raw != lost.Raw {
		t.Errorf("got %s, want %s", again.Raw, lost.Raw)
	}
	hosttest.Eventually(t, "no answer is unsent", func() bool { return s.countUnsent(t) == 0 })
	other := task("and you?")
	exchange(t, c, other, "ack")
	if got := read(t, c, "task_response"); got.Parent != other.ID {
		t.Errorf("got %s", got.Raw)
	}
}

// TestAnswerAcknowledgedWhileClosing (I-026, I-058): a peer that closes still acknowledges the
// answers that it gets meanwhile; they do not come again.
func TestAnswerAcknowledgedWhileClosing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := newSlowAgent(s)
	c := s.spoke(t, token, "depot-1")
	exchange(t, c, slowTask(0), "ack")
	if err := c.Send(iacptest.New("connection_close", "depot-1", "", map[string]any{"reason": "enough"}).Text()); err != nil {
		t.Fatal(err)
	}
	agent.answers <- "17"
	read(t, c, "task_response")
	if got, err := c.Read(); err == nil {
		t.Errorf("got %s, want the end", got.Raw)
	}
	if n := s.countUnsent(t); n != 0 {
		t.Errorf("%d answers are unsent", n)
	}
}

// TestUnsentRuntimeFails (I-057): a store that fails for a moment while an unsent answer is looked
// for, or waited for, costs its asker nothing.
func TestUnsentRuntimeFails(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Find", "Look", "Wait"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *iacp.Options) { o.FirstPause = time.Millisecond })
			agent := newSlowAgent(s)
			m := slowTask(0)
			s.cutAfter(t, m)
			s.rt.FailNext(method, errors.New("the disk is full"))
			c := s.spoke(t, token, "depot-1")
			agent.answers <- "17"
			got := read(t, c, "task_response")
			if got.Parent != m.ID || got.Payload["result"] != "17" {
				t.Errorf("got %s", got.Raw)
			}
			hosttest.Eventually(t, "no answer is unsent", func() bool { return s.countUnsent(t) == 0 })
		})
	}
}

// TestAnswerRuntimeFails (I-031, I-057): a store that fails while an answer is waited for for the
// first time costs its asker nothing.
func TestAnswerRuntimeFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.FirstPause = time.Millisecond })
	s.rt.FailNext("Wait", errors.New("the disk is full"))
	m := task("hello")
	if got := exchange(t, s.dial(t), m, "task_response"); got.Parent != m.ID || got.Payload["status"] != "completed" {
		t.Errorf("got %s", got.Raw)
	}
}

// erased is a store of a tenant whose first write meets its erasure.
type erased struct {
	state.Store
	writes atomic.Int64
}

// Put implements [state.Store].
func (e *erased) Put(ctx context.Context, r state.Record) (int64, error) {
	if e.writes.Add(1) == 1 {
		return 0, fmt.Errorf("%w: %q", swarm.ErrErasing, r.Key.Tenant)
	}
	return e.Store.Put(ctx, r)
}

// TestUnsentErased (I-057): after an erasure no record of an unsent answer is written, neither
// where the write meets the erasure nor where the message has gone with it.
func TestUnsentErased(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		erase  func(*gatewaytest.Runtime)
		writes int64
	}{
		"while it writes":  {func(*gatewaytest.Runtime) {}, 1},
		"before it writes": {func(rt *gatewaytest.Runtime) { rt.FailNext("Find", gateway.ErrUnknown) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var store *erased
			var rt *gatewaytest.Runtime
			t.Run("site", func(t *testing.T) {
				s := newSite(t, func(o *iacp.Options) {
					o.FirstPause = time.Millisecond
					store = &erased{Store: o.Runtime.State()}
					o.Runtime = stored{o.Runtime, store}
				})
				newSlowAgent(s)
				rt = s.rt
				peer := s.spoke(t, token, "depot-1")
				exchange(t, peer, slowTask(0), "ack")
				c.erase(rt)
				_ = peer.Close()
			})
			if n := store.writes.Load(); n != c.writes {
				t.Errorf("%d writes, want %d", n, c.writes)
			}
			if n := (&site{rt: rt}).countUnsent(t); n != 0 {
				t.Errorf("%d records after the erasure", n)
			}
		})
	}
}

// TestUnsentPlaces (I-057, I-059): the unsent answers that a connection waits for count among its
// messages that wait for answers; those without a place come when there is one.
func TestUnsentPlaces(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := newSlowAgent(s)
	asked := make([]iacptest.Message, 1001)
	c := s.spoke(t, token, "depot-1")
	other := s.dial(t)
	for n := range asked {
		asked[n] = slowTask(0)
		if n < 1000 {
			exchange(t, c, asked[n], "ack")
			continue
		}
		asked[n].Metadata = map[string]any{"ack": true}
		exchange(t, other, asked[n], "ack")
	}
	_, _ = c.Close(), other.Close()
	hosttest.Eventually(t, "the answers are kept", func() bool { return s.countUnsent(t) == len(asked) })
	c = s.spoke(t, token, "depot-1")
	hosttest.Eventually(t, "all places are taken", func() bool {
		if err := c.Send(task("one more").Text()); err != nil {
			t.Fatal(err)
		}
		for {
			switch got, err := c.Read(); {
			case err != nil:
				t.Fatal(err)
			case got.Type == "error_response":
				return strings.Contains(got.Raw, "1000 messages of the connection wait")
			case got.Type == "task_response":
				acknowledge(t, c, got)
				return false
			}
		}
	})
	go func() {
		for range asked {
			agent.answers <- "17"
		}
	}()
	wanted := map[string]bool{}
	for _, m := range asked {
		wanted[m.ID] = true
	}
	for len(wanted) > 0 {
		delete(wanted, read(t, c, "task_response").Parent)
	}
}

// TestUnsentUnreadable (I-057): a record that cannot be read keeps no answer behind it from its
// asker, and is not removed.
func TestUnsentUnreadable(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"no record": `{`, "a record of another form": `{"id":17}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *iacp.Options) { o.FirstPause = time.Millisecond })
			agent := newSlowAgent(s)
			m := slowTask(0)
			s.cutAfter(t, m)
			list, err := s.rt.State().List(t.Context(), unsentPlace, state.Key{}, 1)
			if err != nil {
				t.Fatal(err)
			}
			bad := list[0].Key
			bad.Name, _, _ = strings.Cut(bad.Name, "/")
			bad.Name += "/0"
			if _, err := s.rt.State().Put(t.Context(), state.Record{Key: bad, Value: []byte(value)}); err != nil {
				t.Fatal(err)
			}
			agent.answers <- "17"
			c := s.spoke(t, token, "depot-1")
			got := read(t, c, "task_response")
			if got.Parent != m.ID {
				t.Errorf("got %s", got.Raw)
			}
			hosttest.Eventually(t, "only the record that cannot be read stays", func() bool {
				list, err := s.rt.State().List(t.Context(), unsentPlace, state.Key{}, 10)
				return err == nil && len(list) == 1 && list[0].Key == bad
			})
		})
	}
}
