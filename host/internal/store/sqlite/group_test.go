package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/swarm"
)

// blocked holds the writer in a change of its own until the test lets go.
type blocked struct {
	in, out chan struct{}
	once    sync.Once
}

func (b *blocked) bytes() int { return 0 }

func (b *blocked) tenantName() string { return swarm.DefaultTenant }

func (b *blocked) apply(context.Context, *tables) (int, error) {
	b.once.Do(func() { // a group may be repeated
		b.in <- struct{}{}
		<-b.out
	})
	return 0, nil
}

// length is how many jobs of the tests' tenant wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.tenants.Member(swarm.DefaultTenant).Item.jobs)
}

// together commits steps in one group and returns their results.
func together(t *testing.T, s *Store, steps []swarm.Mutation) []error {
	t.Helper()
	b := &blocked{in: make(chan struct{}), out: make(chan struct{})}
	results := make([]error, len(steps))
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.writer.submit(t.Context(), b) })
	<-b.in
	for i, st := range steps {
		wg.Go(func() { results[i] = s.Commit(t.Context(), st) })
	}
	for s.writer.queue.length() < len(steps) {
		wait()
	}
	b.out <- struct{}{}
	wg.Wait()
	return results
}

func TestGroupIsOneTransaction(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	var steps []swarm.Mutation
	for i := range 20 {
		steps = append(steps, testStep(fmt.Sprint(i), 1))
	}
	if err := errors.Join(together(t, s, steps)...); err != nil {
		t.Fatal(err)
	}
	if commits, groups := s.Stats(); commits != 20 || groups != 1 {
		t.Errorf("Stats() = %d, %d, want 20 steps in 1 group", commits, groups)
	}
}

func TestGroupSurvivesBadSteps(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	// Two of the same number: the second is to blame. A number is only known to
	// be taken inside the transaction.
	results := together(t, s, []swarm.Mutation{
		testStep("a", 1), testStep("b", 1), testStep("c", 1), testStep("a", 1), testStep("b", 1), testStep("d", 1),
	})
	failed := 0
	for _, err := range results {
		if err != nil {
			failed++
			if !strings.Contains(err.Error(), "a number in this step is taken already") {
				t.Errorf("Commit() = %v", err)
			}
		}
	}
	if commits, groups := s.Stats(); failed != 2 || commits != 4 || groups != 1 {
		t.Errorf("%d steps failed, Stats() = %d, %d, want 2 and 4 steps in 1 group", failed, commits, groups)
	}
	for _, task := range []string{"a", "b", "c", "d"} {
		events, err := s.Events(t.Context(), testStep(task, 1).Task.Key, 0, 10)
		if len(events) != 1 || err != nil {
			t.Errorf("task %s has %d events, %v, want 1", task, len(events), err)
		}
	}
	// Its first event is new and counted, its second is taken.
	half := testStep("a", 2)
	half.Events = append(half.Events, testStep("a", 1).Events...)
	if err := s.Commit(t.Context(), half); err == nil {
		t.Error("a number was given twice")
	}
	good := openTest(t, t.TempDir())
	for _, task := range []string{"a", "b", "c", "d"} {
		if err := good.Commit(t.Context(), testStep(task, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := tallyOf(t, s), tallyOf(t, good); got != want {
		t.Errorf("counted are %+v, want %+v: no attempt that was rolled back counts", got, want)
	}
}

// tallyOf is what a store has counted for the tests' tenant.
func tallyOf(t *testing.T, s *Store) swarm.Footprint {
	t.Helper()
	f, err := s.Footprint(t.Context(), swarm.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStatsCountWhatIsWritten(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	post := testPost("t1", 1)
	for range 3 {
		_, err := s.Accept(t.Context(), testStep("t1", 1), post)
		if err != nil && !errors.Is(err, swarm.ErrDuplicate) {
			t.Fatal(err)
		}
	}
	if _, err := s.Purge(t.Context(), testTime); err != nil {
		t.Fatal(err)
	}
	if commits, groups := s.Stats(); commits != 1 || groups != 1 {
		t.Errorf("Stats() = %d, %d, want the one step that was accepted", commits, groups)
	}
}

// A full disk fails the whole group, and says so. When there is space again
// the store goes on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	limit := func(pages int) {
		t.Helper()
		if _, err := s.writer.conn.ExecContext(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // the engine takes it as "no more than now"
	var steps []swarm.Mutation
	for i := range 10 {
		st := testStep(fmt.Sprint(i), 1)
		st.Events[0].Description = noise(10_000)
		steps = append(steps, st)
	}
	for i, err := range together(t, s, steps) {
		if err == nil || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("Commit of step %d = %v, want a full disk", i, err)
		}
	}
	limit(1 << 30)
	for i, st := range steps {
		if _, err := s.Load(t.Context(), st.Task.Key); !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("Load(%d) = %v, want nothing of the group", i, err)
		}
		if err := s.Commit(t.Context(), st); err != nil {
			t.Errorf("Commit of step %d with space = %v", i, err)
		}
	}
}

func TestFenced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	if err := s.Commit(t.Context(), testStep("t1", 1)); err != nil {
		t.Fatal(err)
	}
	exec(t, openRaw(t, dir), "UPDATE meta SET value = value + 1 WHERE name = 'epoch'")

	_, accept := s.Accept(t.Context(), testStep("t2", 1), testPost("t2", 1))
	_, purge := s.Purge(t.Context(), testTime)
	for what, err := range map[string]error{
		"Commit": s.Commit(t.Context(), testStep("t1", 2)), "Accept": accept, "Purge": purge,
	} {
		if !errors.Is(err, swarm.ErrFenced) {
			t.Errorf("%s = %v, want ErrFenced", what, err)
		}
	}
	events, err := s.Events(t.Context(), testStep("t1", 1).Task.Key, 0, 10)
	if len(events) != 1 || err != nil {
		t.Errorf("task has %d events, %v, want what was written before", len(events), err)
	}
}

// What was handed over before Close is written; a caller still waiting for room
// in the queue when its context ends has handed over nothing.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	b := &blocked{in: make(chan struct{}), out: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.writer.submit(t.Context(), b) })
	<-b.in
	for i := range tenantChanges {
		wg.Go(func() {
			if err := s.Commit(t.Context(), testStep(fmt.Sprint(i), 1)); err != nil {
				t.Error(err)
			}
		})
	}
	for s.writer.queue.length() < tenantChanges {
		wait()
	}
	cause := errors.New("caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	wg.Go(func() {
		if err := s.Commit(ctx, testStep("late", 1)); !errors.Is(err, cause) {
			t.Errorf("Commit() = %v, want the cause of the context's end", err)
		}
	})
	cancel(cause)
	b.out <- struct{}{}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), testStep("late", 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit after Close = %v, want ErrClosed", err)
	}
}
