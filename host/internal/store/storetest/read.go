package storetest

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/swarm"
)

var readCases = cases{
	"nothing is there":         readNothing,
	"events come in pages":     readEvents,
	"history comes in pages":   readHistory,
	"large entries end a page": readLarge,
	"secret is made once":      readSecret,
	"claim lists what runs":    readClaim,
	"claim counts rows":        readClaimRows,
	"gaps do not stop a page":  readGaps,
}

func readNothing(t *testing.T, s Store) {
	ctx, key := t.Context(), swarm.TaskKey{InstanceKey: alice, Task: "none"}
	_, err := s.Load(ctx, key)
	wantError(t, "Load", err, swarm.ErrNotFound)
	events, err := s.Events(ctx, key, 0, 10)
	same(t, "events", []any{len(events), err}, []any{0, nil})
	entries, err := s.History(ctx, key, "a", 0, 10)
	same(t, "history", []any{len(entries), err}, []any{0, nil})
	entries, err = s.HistoryTail(ctx, key, "a", 10, 1000)
	same(t, "tail", []any{len(entries), err}, []any{0, nil})
	instances, err := s.Instances(ctx, alice.Tenant, alice.Swarm)
	same(t, "instances", []any{len(instances), err}, []any{0, nil})
	keys, err := s.RunningTasks(ctx)
	same(t, "claim", []any{len(keys), err}, []any{0, nil})
	n, err := s.Purge(ctx, start)
	same(t, "purge", []any{n, err}, []any{int64(0), nil})
}

// pages are positions and what they must give of ten entries.
var pages = []struct {
	after int64
	limit int
	want  []int64
}{
	{0, everything, upTo(1, 10)},
	{0, 3, upTo(1, 3)},
	{3, 3, upTo(4, 6)},
	{9, 3, upTo(10, 10)},
	{10, 3, nil},
	{1 << 40, 3, nil},
	{-5, 2, upTo(1, 2)},
	{0, 0, nil},
	{0, -1, nil},
}

func readEvents(t *testing.T, s Store) {
	st, neighbour := newTask(alice, "t1"), newTask(alice, "t2")
	for range 10 {
		for _, st := range []*taskBuilder{st, neighbour} {
			step := st.mutation()
			step.Events = []swarm.Event{st.event("e")}
			mustCommit(t, s, step)
		}
	}
	for _, p := range pages {
		got, err := s.Events(t.Context(), st.key(), p.after, p.limit)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("events after %d, at most %d", p.after, p.limit), seqs(got), p.want)
	}
}

func readHistory(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	for range 5 {
		step := st.mutation()
		for _, agent := range []string{"a", "b", "a", "b"} {
			step.History = append(step.History, st.note(agent, "of "+agent))
		}
		mustCommit(t, s, step)
	}
	for _, p := range pages {
		got, err := s.History(t.Context(), st.key(), "b", p.after, p.limit)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("history after %d, at most %d", p.after, p.limit), entrySeqs(got), p.want)
	}
	for _, e := range mustHistory(t, s, st.key(), "b") {
		same(t, "note", e.Note, "of b")
	}
}

func readGaps(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step := st.mutation()
	for _, seq := range []int64{7, 2, 1 << 20} {
		e := st.event("e")
		e.Seq = seq
		step.Events = append(step.Events, e)
	}
	mustCommit(t, s, step)
	same(t, "events", seqs(mustEvents(t, s, st.key())), []int64{2, 7, 1 << 20})
}

func readSecret(t *testing.T, s Store) {
	first, err := s.Secret(t.Context())
	if err != nil || len(first) != 32 {
		t.Fatalf("Secret() = %d bytes, %v, want 32", len(first), err)
	}
	want := string(first)
	clear(first)
	again, err := s.Secret(t.Context())
	if err != nil || string(again) != want {
		t.Errorf("Secret() is another the second time, %v", err)
	}
}

func readClaim(t *testing.T, s Store) {
	var want []swarm.TaskKey
	for i, state := range []swarm.State{
		swarm.StateRunning, swarm.StatePaused, swarm.StateCompleted, swarm.StateFailed,
		swarm.StateTimedOut, swarm.StateCancelled, swarm.StateRunning,
	} {
		st := newTask(alice, name(i))
		st.task.State = state
		mustCommit(t, s, st.mutation())
		if state == swarm.StateRunning {
			want = append(want, st.key())
		}
	}
	wantClaim(t, s, want)

	ended, reopened := newTask(alice, name(0)), newTask(alice, name(2))
	ended.task.State = swarm.StateCompleted
	mustCommit(t, s, ended.mutation())
	mustCommit(t, s, reopened.mutation())
	wantClaim(t, s, []swarm.TaskKey{reopened.key(), want[1]})
}

func wantClaim(t *testing.T, s Store, want []swarm.TaskKey) {
	t.Helper()
	got := map[swarm.TaskKey]bool{}
	for key := range mustClaim(t, s) {
		got[key] = true
	}
	same(t, "claimed tasks", got, set(want))
}

// mustClaim returns what runs, with how many rows each has in its queue.
func mustClaim(t *testing.T, s Store) map[swarm.TaskKey]int {
	t.Helper()
	found, err := s.RunningTasks(t.Context())
	if err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	waiting := make(map[swarm.TaskKey]int, len(found))
	for _, c := range found {
		if _, twice := waiting[c.TaskKey]; twice {
			t.Errorf("Claim() lists %q twice", c.Task)
		}
		waiting[c.TaskKey] = c.Waiting
	}
	return waiting
}

func set[K comparable](keys []K) map[K]bool {
	m := make(map[K]bool, len(keys))
	for _, k := range keys {
		m[k] = true
	}
	return m
}

// readClaimRows wants a claim to count what is in the queue, and not what is in the
// stash or in the queue of another task.
func readClaimRows(t *testing.T, s Store) {
	for i, rows := range []int{3, 0, 2} {
		st := newTask(alice, name(i))
		step := st.mutation()
		for n := range rows {
			step.Insert = append(step.Insert, st.row("a", name(n)))
		}
		if rows > 0 {
			aside := st.row("a", "aside")
			aside.Stash = true
			step.Insert = append(step.Insert, aside)
		}
		mustCommit(t, s, step)
	}
	key := func(i int) swarm.TaskKey { return swarm.TaskKey{InstanceKey: alice, Task: name(i)} }
	same(t, "rows that wait", mustClaim(t, s), map[swarm.TaskKey]int{key(0): 3, key(1): 0, key(2): 2})
}

// readLarge wants pages that end early when their entries are large, and no
// empty page before the end.
func readLarge(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step := st.mutation()
	for range 5 {
		e := st.event("e")
		e.Description = strings.Repeat("x", swarm.PageBytes/2+1)
		step.Events = append(step.Events, e)
		step.History = append(step.History, st.note("a", e.Description))
	}
	mustCommit(t, s, step)
	for after := int64(0); after < 5; after++ {
		events, err := s.Events(t.Context(), st.key(), after, everything)
		same(t, "events of a page", []any{seqs(events), err}, []any{[]int64{after + 1}, nil})
		entries, err := s.History(t.Context(), st.key(), "a", after, everything)
		same(t, "entries of a page", []any{entrySeqs(entries), err}, []any{[]int64{after + 1}, nil})
	}
}
