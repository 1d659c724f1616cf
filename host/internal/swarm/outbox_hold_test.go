package swarm_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"skep/host/internal/swarm"
)

// loadCounter counts the tasks that are read from the store, and the submissions.
type loadCounter struct {
	swarm.Store
	tasks, submissions atomic.Int64
}

func (s *loadCounter) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	s.tasks.Add(1)
	return s.Store.Load(ctx, key)
}

func (s *loadCounter) Submission(ctx context.Context, key swarm.InstanceKey, door, id string) (swarm.Submission, error) {
	s.submissions.Add(1)
	return s.Store.Submission(ctx, key, door, id)
}

// TestOutboxHold: a task that has ended stays in memory while its answer leaves by the outbox, so
// that its delivery reads nothing of it from the store. Of many that a peer does not take the oldest
// leaves memory, and is delivered as well. None is in memory when all have left.
func TestOutboxHold(t *testing.T) {
	store := &loadCounter{}
	r := newRealm(t, func(h *hive) {
		h.forward = ways{}
		h.wrap = func(s swarm.Store) swarm.Store { store.Store = s; return store }
	})
	const many = 128 + 1
	bodies := make([]string, many)
	for n := range many {
		in := r.wrapper(fmt.Sprint("job-", n), "boss", "complete")
		in.Reply = true
		bodies[n] = r.wait(r.receive(in).Exchanges[0]).Body
	}
	eventually(t, "one of them leaves memory", func() bool { return r.rt.InMemory() == many-1 })
	tasks, submissions := store.tasks.Load(), store.submissions.Load()
	for n := range many {
		box := swarm.OutboxKey{Task: guest("hive", "acme", fmt.Sprint("job-", n)), Peer: "acme"}
		d, ok, err := r.rt.NextDelivery(t.Context(), box)
		if err != nil || !ok || !d.Last {
			t.Fatalf("%d: %t, the last %t, %v", n, ok, d.Last, err)
		}
		x, err := r.rt.FindExchange(t.Context(), box.Task.InstanceKey, toyDoor, d.Answers)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.rt.LookExchange(t.Context(), x, swarm.Event{})
		if err != nil || s.Answer.Body != bodies[n] || s.Answer.Cursor == 0 {
			t.Errorf("%d: the answer is %+v, %v; it was %q", n, s.Answer, err, bodies[n])
		}
		if err := r.rt.MarkDelivered(t.Context(), box, d.Wrapper.MessageID, ""); err != nil {
			t.Fatal(err)
		}
	}
	if read := store.tasks.Load() - tasks; read == 0 || read > 3 {
		t.Errorf("tasks were read %d times, want the one that has left memory, three times at most", read)
	}
	if read := store.submissions.Load() - submissions; read != many+1 {
		t.Errorf("submissions were read %d times, want each once and the one that has left memory twice", read)
	}
	if left := r.rt.InMemory(); left != 0 {
		t.Errorf("%d tasks are in memory", left)
	}
}
