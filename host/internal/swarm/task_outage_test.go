package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skep/abi"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

var errOutage = errors.New("input/output error")

// outageStore fails calls of one kind for a time, which begins with the first of them.
// A time of zero fails one call. Commits of a task "stuck" wait for the
// test.
type outageStore struct {
	swarm.Store
	kind  string
	lasts time.Duration

	mu    sync.Mutex
	armed bool
	until time.Time
	stuck chan struct{}
}

func (s *outageStore) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.until = true, time.Time{}
}

// disarm ends the outage, and reports whether a call has failed.
func (s *outageStore) disarm() (failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	return !s.until.IsZero()
}

func (s *outageStore) fault(kind string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.armed || kind != s.kind:
		return nil
	case s.until.IsZero():
		s.until = time.Now().Add(s.lasts)
		return errOutage
	case time.Now().Before(s.until):
		return errOutage
	}
	return nil
}

func (s *outageStore) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	if err := s.fault("load"); err != nil {
		return swarm.Snapshot{}, err
	}
	return s.Store.Load(ctx, key)
}

func (s *outageStore) Record(ctx context.Context, key swarm.TaskKey, turn int64) (swarm.Record, error) {
	if err := s.fault("record"); err != nil {
		return swarm.Record{}, err
	}
	return s.Store.Record(ctx, key, turn)
}

func (s *outageStore) HistoryTail(ctx context.Context, key swarm.TaskKey, agent string, entries, bytes int) ([]abi.HistoryEntry, error) {
	if err := s.fault("history"); err != nil {
		return nil, err
	}
	return s.Store.HistoryTail(ctx, key, agent, entries, bytes)
}

func (s *outageStore) Commit(ctx context.Context, m swarm.Mutation) error {
	if m.Task.Key.Task == "stuck" {
		<-s.stuck
	}
	if err := s.fault("commit"); err != nil {
		return err
	}
	return s.Store.Commit(ctx, m)
}

// newOutageHive is a hive whose boss sets a timer of an hour for every post and completes
// the task with it.
func newOutageHive(t *testing.T, s *outageStore) *hive {
	s.stuck = make(chan struct{})
	return newHive(t, func(h *hive) {
		h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
		h.def.Limits.TaskTimeout = 0
		h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			if incoming(t).Payload.Subject == "q" {
				if _, fault := t.SetTimer(time.Hour, "later"); fault != nil {
					return failed(fault)
				}
				call(t, "await_message", obj{})
				return swarm.Outcome{}
			}
			return script(ctx, t)
		}
	})
}

// Reads that fail once, or for a minute, when a timer or a deadline is due, when a turn
// begins, or when a host starts, cost time and nothing else.
func TestReadsFailForAWhile(t *testing.T) {
	for _, kind := range []string{"load", "record", "history"} {
		for _, lasts := range []time.Duration{0, time.Minute} {
			for _, at := range []string{"timer", "start"} {
				t.Run(fmt.Sprintf("%s %v at the %s", kind, lasts, at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &outageStore{kind: kind, lasts: lasts}
						h := newOutageHive(t, s)
						h.mustPost("x", task("t"))
						h.mustPost("x", task("timed"), func(p *swarm.Post) { p.Timeout = 30 * time.Minute })
						synctest.Wait()
						if at == "start" {
							s.arm()
						}
						h.restart()
						time.Sleep(20 * time.Minute)
						s.arm()
						time.Sleep(2 * time.Hour)
						synctest.Wait()
						if snap := h.record("t"); snap.Task.State != swarm.StateCompleted {
							t.Errorf("the task is %s, with %d rows", snap.Task.State, len(snap.Rows))
						}
						if snap := h.record("timed"); snap.Task.State != swarm.StateTimedOut {
							t.Errorf("the timed task is %s", snap.Task.State)
						}
						if n := h.rt.CountDamaged(); n > 0 {
							t.Errorf("%d tasks are set aside", n)
						}
						h.stop()
					})
				})
			}
		}
	}
}

// A turn that moves to another host while its past cannot be read is run there, and does not fail.
func TestTurnMovesDuringOutage(t *testing.T) {
	for _, kind := range []string{"record", "history"} {
		synctest.Test(t, func(t *testing.T) {
			s := &outageStore{kind: kind, lasts: time.Minute}
			h := newOutageHive(t, s)
			h.mustPost("x", task("t"))
			s.arm()
			time.Sleep(time.Hour + 10*time.Second) // the timer's turn waits for the store
			h.rt.MoveTurns()
			time.Sleep(time.Second)
			if !s.disarm() {
				t.Error("the store was not read")
			}
			if snap := h.record("t"); snap.Task.State != swarm.StateRunning || len(snap.Rows) != 1 {
				t.Errorf("%s: the task is %s with %d rows", kind, snap.Task.State, len(snap.Rows))
			}
			h.restart()
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if snap := h.record("t"); snap.Task.State != swarm.StateCompleted {
				t.Errorf("%s: at the next host the task is %s", kind, snap.Task.State)
			}
			h.stop()
		})
	}
}

// A turn's commit that fails once, or for a minute, costs time and nothing else.
func TestTurnCommitFailsForAWhile(t *testing.T) {
	for _, lasts := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := &outageStore{kind: "commit", lasts: lasts}
			h := newOutageHive(t, s)
			s.arm()
			h.mustPost("x", task("t"))
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if snap := h.record("t"); snap.Task.State != swarm.StateCompleted || snap.Task.Steps != 2 {
				t.Errorf("an outage of %v: the task is %s after %d turns", lasts, snap.Task.State, snap.Task.Steps)
			}
			h.stop()
		})
	}
}

// A task that waits for a write keeps no other from its timer.
func TestTimersDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &outageStore{}
		h := newOutageHive(t, s)
		h.mustPost("x", task("t"))
		synctest.Wait()
		time.Sleep(time.Second)
		go h.rt.Submit(context.Background(), swarm.Post{ // its turn is never committed
			Principal: alice(), Swarm: "hive", Door: "test", Type: "request", Subject: "q", Body: "x", Task: "stuck", Timeout: time.Minute,
		})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if snap := h.record("t"); snap.Task.State != swarm.StateCompleted {
			t.Errorf("the task is %s", snap.Task.State)
		}
		close(s.stuck)
		synctest.Wait()
		h.stop()
	})
}

// A task that an earlier host left running with nothing to do has stalled, and ends.
func TestRecoveredTaskStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHive(t)
		h.ask("hello", task("t"))
		h.stop()
		store, err := sqlite.Open(t.Context(), h.dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := store.Load(t.Context(), key("t"))
		if err != nil {
			t.Fatal(err)
		}
		snap.Task.State = swarm.StateRunning
		snap.Task.Mutations++
		if err := errors.Join(store.Commit(t.Context(), swarm.Mutation{Task: snap.Task}), store.Close()); err != nil {
			t.Fatal(err)
		}
		h.start()
		synctest.Wait()
		if got := h.record("t").Task; got.State != swarm.StateFailed || got.Finish.Subject != mail.SubjectRuntimeError {
			t.Errorf("it is %s, finished by %q", got.State, got.Finish.Subject)
		}
		h.stop()
	})
}
