package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"skep/host/internal/swarm"
)

var concurrencyCases = cases{
	"one of many posts wins a key":       concurrentKey,
	"a bad step does not harm others":    concurrentBad,
	"many tasks move while others read":  concurrentTasks,
	"many writers fill one task":         concurrentOneTask,
	"a caller that leaves knows the end": concurrentLeave,
	"a snapshot is of one moment":        concurrentSnapshot,
}

// name makes an id of a number.
func name(i int) string { return fmt.Sprintf("n%06d", i) }

// rounds is how often the tests here do their thing.
func rounds() int {
	if testing.Short() {
		return 20
	}
	return 50
}

// runConcurrently calls f with 0 to n-1 from many goroutines and wants no error.
func runConcurrently(t *testing.T, goroutines, n int, f func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					t.Errorf("call %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func concurrentKey(t *testing.T, s Store) {
	for round := range rounds() {
		var winner atomic.Value
		var wins atomic.Int64
		key := name(round)
		runConcurrently(t, 8, 8, func(i int) error {
			st := newTask(alice, key+"-"+name(i))
			step, post := st.post("rest", key, "hello")
			got, err := s.Accept(t.Context(), step, post)
			if err == nil {
				wins.Add(1)
				winner.Store(got.Task)
			} else if !errors.Is(err, swarm.ErrDuplicate) {
				return err
			}
			return nil
		})
		if wins.Load() != 1 {
			t.Fatalf("%d posts won one key", wins.Load())
		}
		same(t, "winner", mustSubmission(t, s, alice, "rest", key).Task, winner.Load())
	}
	tasks, err := s.RunningTasks(t.Context())
	if err != nil || len(tasks) != rounds() {
		t.Errorf("Claim() = %d tasks, %v, want the %d winners", len(tasks), err, rounds())
	}
}

// Every third step takes a number that is taken. It fails alone, although the
// engine may write it together with others.
func concurrentBad(t *testing.T, s Store) {
	n := 10 * rounds()
	victim := newTask(alice, "victim")
	first := victim.event("first")
	step := victim.mutation()
	step.Events = []swarm.Event{first}
	mustCommit(t, s, step)
	runConcurrently(t, 16, n, func(i int) error {
		st := newTask(alice, name(i))
		if i%3 == 0 {
			st = newTask(alice, "victim")
			st.task.State = swarm.StateFailed
		}
		step := st.mutation()
		step.Insert, step.Events = []swarm.Row{st.row("a", "x")}, []swarm.Event{st.event("e")}
		step.History = []swarm.AgentEntry{st.note("a", "x")}
		if err := s.Commit(t.Context(), step); (err != nil) != (i%3 == 0) {
			return fmt.Errorf("Commit() = %w, bad: %t", err, i%3 == 0)
		}
		return nil
	})
	snap := mustLoad(t, s, victim.key())
	same(t, "victim", snap, swarm.Snapshot{Task: step.Task})
	for i := range n {
		if i%3 != 0 {
			key := swarm.TaskKey{InstanceKey: alice, Task: name(i)}
			same(t, "rows", numbers(mustLoad(t, s, key).Rows), []int64{1})
			same(t, "events", seqs(mustEvents(t, s, key)), []int64{1})
			same(t, "history", entrySeqs(mustHistory(t, s, key, "a")), []int64{1})
		}
	}
}

func concurrentTasks(t *testing.T, s Store) {
	const tasks = 8
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for i := range 2 {
		readers.Go(func() { readAlong(ctx, t, s, i) })
	}
	var writers sync.WaitGroup
	for i := range tasks {
		writers.Go(func() { advance(t, s, name(i), rounds()) })
	}
	writers.Wait()
	stop()
	readers.Wait()
	for i := range tasks {
		wantAdvanced(t, s, swarm.TaskKey{InstanceKey: alice, Task: name(i)}, int64(rounds()), int64(rounds()))
	}
}

// readAlong asks everything a reader can ask until ctx ends, and wants each
// list to be without gaps.
func readAlong(ctx context.Context, t *testing.T, s Store, i int) {
	for ctx.Err() == nil {
		key := swarm.TaskKey{InstanceKey: alice, Task: name(i % 8)}
		i++
		events, err := s.Events(ctx, key, 0, everything)
		entries, err2 := s.HistoryTail(ctx, key, "supervisor", 50, 64<<10)
		_, err3 := s.RunningTasks(ctx)
		if err := errors.Join(err, err2, err3); err != nil && ctx.Err() == nil {
			t.Errorf("reading along: %v", err)
			return
		}
		if n := int64(len(events)); n > 0 && events[n-1].Seq != n {
			t.Errorf("%d events end with %d", n, events[n-1].Seq)
		}
		if n := len(entries); n > 0 && entries[n-1].Seq != entries[0].Seq+int64(n)-1 {
			t.Errorf("history tail has a gap: %v", entrySeqs(entries))
		}
	}
}

func concurrentOneTask(t *testing.T, s Store) {
	n := 5 * rounds()
	key := swarm.TaskKey{InstanceKey: alice, Task: "t1"}
	runConcurrently(t, 16, n, func(i int) error {
		st := newTask(alice, key.Task)
		st.task.Cursor, st.task.Rows, st.task.History["a"] = int64(i), int64(i), int64(i)
		step := st.mutation()
		step.Insert, step.Events = []swarm.Row{st.row("a", "x")}, []swarm.Event{st.event("e")}
		step.History = []swarm.AgentEntry{st.note("a", "x")}
		return s.Commit(t.Context(), step)
	})
	same(t, "rows", numbers(mustLoad(t, s, key).Rows), upTo(1, int64(n)))
	same(t, "events", seqs(mustEvents(t, s, key)), upTo(1, int64(n)))
	same(t, "history", entrySeqs(mustHistory(t, s, key, "a")), upTo(1, int64(n)))
}

// A caller whose context ends meanwhile still gets the true outcome.
func concurrentLeave(t *testing.T, s Store) {
	runConcurrently(t, 8, 5*rounds(), func(i int) error {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() { cancel(); close(left) }()
		defer func() { <-left }()
		st := newTask(alice, name(i))
		told := s.Commit(ctx, st.mutation())
		if told != nil && !errors.Is(told, context.Canceled) {
			return told
		}
		_, err := s.Load(t.Context(), st.key())
		if written := err == nil; written != (told == nil) {
			return fmt.Errorf("Commit() = %w, written: %t", told, written)
		}
		return nil
	})
}

// Rows and states of a snapshot agree with its record, however fast the task
// moves on.
func concurrentSnapshot(t *testing.T, s Store) {
	advance(t, s, "t1", 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		advance(t, s, "t1", 10*rounds())
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		key := swarm.TaskKey{InstanceKey: alice, Task: "t1"}
		snap, err := s.Load(t.Context(), key)
		if err != nil {
			t.Fatalf("Load(%q) = %v", key.Task, err)
		}
		n := snap.Task.Cursor
		same(t, "rows", numbers(snap.Rows), []int64{n})
		same(t, "state", snap.States["supervisor"], json.RawMessage(fmt.Sprint(n)))
		queue, err := s.LoadQueue(t.Context(), key)
		if err != nil {
			t.Fatalf("LoadQueue(%q) = %v", key.Task, err)
		}
		same(t, "rows", numbers(queue.Rows), []int64{queue.Task.Cursor})
	}
}
