package swarm_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm"
)

// lossyStore makes the first write of each kind durable and reports that it failed.
type lossyStore struct {
	swarm.Store
	mu   sync.Mutex
	lost map[string]bool
}

// lose reports a failure once for each kind of write.
func (s *lossyStore) lose(kind string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !s.lost[kind] {
		s.lost[kind] = true
		return errOutage
	}
	return err
}

func (s *lossyStore) Accept(ctx context.Context, m swarm.Mutation, sub swarm.Submission) (swarm.Submission, error) {
	first, err := s.Store.Accept(ctx, m, sub)
	return first, s.lose("accept", err)
}

func (s *lossyStore) Commit(ctx context.Context, m swarm.Mutation) error {
	return s.lose("commit", s.Store.Commit(ctx, m))
}

func (s *lossyStore) Journal(ctx context.Context, key swarm.TaskKey, turn int64, w swarm.JournalWrite) (bool, error) {
	kind := "entries"
	switch {
	case w.Cas != nil && w.Cas.Expect == nil:
		kind = "cas"
	case w.Cas != nil:
		kind = "cas that fails"
	case len(w.Entries) == 0:
		kind = "header"
	}
	ok, err := s.Store.Journal(ctx, key, turn, w)
	if err := s.lose(kind, err); err != nil {
		return false, err
	}
	return ok, nil
}

// A write that is durable and reported as failed is made once: the post is accepted, the
// turn's entries have no double, and a compare-and-set keeps its decision.
func TestWritesOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	s := &lossyStore{lost: map[string]bool{}}
	h := newHive(t, func(h *hive) {
		h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
	})
	var swapped, kept bool
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Body != "hello" {
			return script(ctx, turn)
		}
		header := turn.Header()
		scope := turn.KVScope(swarm.KVTask)
		cas := func(n int64, expect []byte) bool {
			ok, err := turn.Journal(swarm.JournalWrite{Cas: &swarm.KVCas{
				Scope: scope, Name: "n", Expect: expect, Value: []byte("1"),
				Yes: swarm.Entry{N: n, Kind: swarm.EntryCall, Answer: []byte("yes")},
				No:  swarm.Entry{N: n, Kind: swarm.EntryCall, Answer: []byte("no")},
			}})
			if err != nil {
				t.Error(err)
			}
			return ok
		}
		for _, w := range []swarm.JournalWrite{{Header: &header}, {Entries: []swarm.Entry{{N: 1, Kind: swarm.EntryCall}}}} {
			if _, err := turn.Journal(w); err != nil {
				t.Error(err)
			}
		}
		swapped, kept = cas(2, nil), !cas(3, []byte("other"))
		out := script(ctx, turn)
		out.Record = &swarm.Record{End: &swarm.TurnEnd{Exit: "ok"}}
		return out
	}
	h.ask("hello", task("t"))
	if !swapped || !kept {
		t.Errorf("a compare-and-set is reported as swapped: %v, one that does not fit as kept: %v", swapped, kept)
	}
	rec, err := h.store.Record(t.Context(), key("t"), 1)
	if err != nil || len(rec.Entries) != 3 {
		t.Errorf("the record has %d entries, want 3: %v", len(rec.Entries), err)
	}
	for _, kind := range []string{"accept", "commit", "header", "entries", "cas", "cas that fails"} {
		if !s.lost[kind] {
			t.Errorf("no outcome of a write of kind %q was lost", kind)
		}
	}
	h.ask("again", task("t"))
}

// failingJournal fails every write of a journal.
type failingJournal struct{ swarm.Store }

func (failingJournal) Journal(context.Context, swarm.TaskKey, int64, swarm.JournalWrite) (bool, error) {
	return false, errOutage
}

// The repeats of a journal end with the turn's task: a turn that nobody waits for keeps no
// slot while the store fails, and none for ever once its task is erased.
func TestJournalEndsWithItsTask(t *testing.T) {
	for name, end := range map[string]func(*hive) error{
		"cancelled": func(h *hive) error { return h.rt.CancelTask(context.Background(), key("t"), "tester") },
		"erased":    func(h *hive) error { return h.rt.EraseTenant(context.Background(), swarm.DefaultTenant, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				h := newHive(t, func(h *hive) {
					h.wrap = func(st swarm.Store) swarm.Store { return failingJournal{st} }
					h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
						header := turn.Header()
						_, err := turn.Journal(swarm.JournalWrite{Header: &header})
						ended <- err
						return swarm.Outcome{}
					}
				})
				h.mustPost("hello", task("t"))
				synctest.Wait()
				stopped := make(chan error, 1)
				go func() { stopped <- end(h) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				select {
				case err := <-ended:
					if err == nil {
						t.Error("a failed write is reported as done")
					}
				default:
					t.Error("the turn still tries to write")
					h.stop()
				}
				if err := <-stopped; err != nil {
					t.Error(err)
				}
				h.stop()
			})
		})
	}
}
