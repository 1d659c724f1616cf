package storetest

import (
	"fmt"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var pruneCases = cases{
	"records of ended tasks go":          pruneRecords,
	"unfinished turns stay":              pruneUnfinished,
	"ended tasks go whole":               pruneTasks,
	"a task that is kept stays":          pruneKept,
	"a task that moved on stays":         pruneMoved,
	"a pruned task can begin anew":       pruneReborn,
	"submissions go":                     pruneSubmissions,
	"an empty rule keeps everything":     pruneNothing,
	"a task of many messages goes whole": pruneLarge,
}

// endedAt commits a task that is in a state since a time, with a record per
// turn that ended at the given times; a zero time is of an unfinished turn.
func endedAt(t *testing.T, s Store, id string, state swarm.State, at time.Time, turns ...time.Time) *taskBuilder {
	t.Helper()
	st, _, post := acceptTask(t, s, alice, id)
	for i, turnEnd := range turns {
		r := swarm.Record{N: int64(i + 1), Header: header("a"), Entries: calls(1, 2)}
		if !turnEnd.IsZero() {
			r.End = end("ok")
			r.End.At = turnEnd
		}
		commitRecord(t, s, st, r)
	}
	commitKV(t, s, st, put(swarm.KVScope{Kind: swarm.KVTask, Agent: "a"}, "k", "v"))
	st.task.State = state
	step := st.mutation()
	step.Task.Updated = at
	step.Answers = []swarm.SubmissionAnswer{{Door: post.Door, Key: post.Key, Cursor: 1}}
	mustCommit(t, s, step)
	return st
}

func recordTurns(t *testing.T, s Store, st *taskBuilder) (turns []int64) {
	t.Helper()
	list, err := s.Records(t.Context(), st.key(), 0, everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		turns = append(turns, r.N)
		if whole := mustRecord(t, s, st.key(), r.N); len(whole.Entries) != 2 {
			t.Errorf("record %d has %d entries", r.N, len(whole.Entries))
		}
	}
	return turns
}

func wantPruned(t *testing.T, s Store, rule swarm.PruneRule, want swarm.Pruned) {
	t.Helper()
	got, err := s.Prune(t.Context(), rule)
	same(t, "pruned", []any{got, err}, []any{want, nil})
}

func hours(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }

func pruneRecords(t *testing.T, s Store) {
	ended := endedAt(t, s, "ended", swarm.StateCompleted, hours(5), hours(1), hours(2), hours(3))
	running := endedAt(t, s, "running", swarm.StateRunning, hours(5), hours(1))
	paused := endedAt(t, s, "paused", swarm.StatePaused, hours(5), hours(1))
	wantPruned(t, s, swarm.PruneRule{Records: hours(1)}, swarm.Pruned{})
	wantPruned(t, s, swarm.PruneRule{Records: hours(2)}, swarm.Pruned{Records: 1})
	same(t, "turns", recordTurns(t, s, ended), []int64{2, 3})
	wantPruned(t, s, swarm.PruneRule{Records: hours(9)}, swarm.Pruned{Records: 2})
	wantPruned(t, s, swarm.PruneRule{Records: hours(9)}, swarm.Pruned{})
	for _, st := range []*taskBuilder{running, paused} {
		same(t, "turns of a task that goes on", recordTurns(t, s, st), []int64{1})
	}
	// A task that is taken up again and ends again is seen again.
	again := ended.mutation()
	again.Task.State = swarm.StateRunning
	again.Record = &swarm.Record{N: 4, Header: header("a"), Entries: calls(1, 2), End: end("ok")}
	mustCommit(t, s, again)
	wantPruned(t, s, swarm.PruneRule{Records: hours(9)}, swarm.Pruned{})
	mustCommit(t, s, ended.mutation())
	wantPruned(t, s, swarm.PruneRule{Records: hours(9)}, swarm.Pruned{Records: 1})
	same(t, "events", len(mustEvents(t, s, ended.key())), 1)
}

func pruneUnfinished(t *testing.T, s Store) {
	st := endedAt(t, s, "t1", swarm.StateFailed, hours(5), hours(1), time.Time{}, hours(1))
	wantPruned(t, s, swarm.PruneRule{Records: hours(9)}, swarm.Pruned{Records: 2})
	same(t, "turns", recordTurns(t, s, st), []int64{2})
	paused := endedAt(t, s, "t2", swarm.StatePaused, hours(5), time.Time{})
	wantPruned(t, s, swarm.PruneRule{Records: hours(9), Tasks: hours(5)}, swarm.Pruned{})
	same(t, "turns", recordTurns(t, s, paused), []int64{1})
}

// wantGone wants nothing to be left of a task.
func wantGone(t *testing.T, s Store, key swarm.TaskKey) {
	t.Helper()
	_, err := s.Load(t.Context(), key)
	wantError(t, "Load", err, swarm.ErrNotFound)
	same(t, "events", len(mustEvents(t, s, key)), 0)
	same(t, "history", len(mustHistory(t, s, key, "supervisor")), 0)
	_, err = s.Record(t.Context(), key, 1)
	wantError(t, "Record", err, swarm.ErrNotFound)
	wantNoValue(t, s, key, swarm.KVScope{Kind: swarm.KVTask, Agent: "a"}, "k")
}

func footprint(t *testing.T, s Store, tenant string) swarm.Footprint {
	t.Helper()
	f, err := s.Footprint(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func pruneTasks(t *testing.T, s Store) {
	running := endedAt(t, s, "running", swarm.StateRunning, hours(1), hours(1))
	paused := endedAt(t, s, "paused", swarm.StatePaused, hours(1), hours(1))
	before := footprint(t, s, alice.Tenant)
	late := endedAt(t, s, "late", swarm.StateCompleted, hours(3), hours(1))
	var old []*taskBuilder
	for i, state := range []swarm.State{swarm.StateCompleted, swarm.StateFailed, swarm.StateTimedOut, swarm.StateCancelled} {
		old = append(old, endedAt(t, s, name(i), state, hours(2), hours(1), time.Time{}))
	}
	wantPruned(t, s, swarm.PruneRule{Tasks: hours(2)}, swarm.Pruned{})
	wantPruned(t, s, swarm.PruneRule{Tasks: hours(3)}, swarm.Pruned{Tasks: 4})
	for _, st := range old {
		wantGone(t, s, st.key())
	}
	for _, st := range []*taskBuilder{running, paused, late} {
		mustLoad(t, s, st.key())
		same(t, "turns", recordTurns(t, s, st), []int64{1})
		wantValue(t, s, st.key(), swarm.KVScope{Kind: swarm.KVTask, Agent: "a"}, "k", "v")
	}
	wantPruned(t, s, swarm.PruneRule{Tasks: hours(9)}, swarm.Pruned{Tasks: 1})
	before.Made += 5 // what was made that day was made
	same(t, "footprint", footprint(t, s, alice.Tenant), before)
}

func pruneKept(t *testing.T, s Store) {
	kept, gone := endedAt(t, s, "kept", swarm.StateCompleted, hours(1), hours(1)), endedAt(t, s, "gone", swarm.StateCompleted, hours(1))
	asked, called := map[swarm.TaskKey]bool{}, 0
	wantPruned(t, s, swarm.PruneRule{Tasks: hours(2), Keep: func(k swarm.TaskKey) bool {
		asked[k] = true
		return k == kept.key()
	}, Gone: func() {
		called++
		_, err := s.Load(t.Context(), gone.key())
		wantError(t, "Load while the pruning goes on", err, swarm.ErrNotFound)
	}}, swarm.Pruned{Tasks: 1})
	same(t, "calls of Gone", called, 1)
	same(t, "asked", asked, map[swarm.TaskKey]bool{kept.key(): true, gone.key(): true})
	mustLoad(t, s, kept.key())
	wantGone(t, s, gone.key())
}

func pruneReborn(t *testing.T, s Store) {
	for range 3 {
		st := endedAt(t, s, "t1", swarm.StateCompleted, hours(1), hours(1))
		same(t, "turns", recordTurns(t, s, st), []int64{1})
		wantPruned(t, s, swarm.PruneRule{Tasks: hours(2), Submissions: hours(1000)}, swarm.Pruned{Tasks: 1, Submissions: 1})
		wantGone(t, s, st.key())
	}
}

func pruneSubmissions(t *testing.T, s Store) {
	st, _, post := acceptTask(t, s, alice, "t1")
	answer := st.mutation()
	answer.Answers = []swarm.SubmissionAnswer{{Door: post.Door, Key: post.Key, Cursor: 1}}
	mustCommit(t, s, answer)
	wantPruned(t, s, swarm.PruneRule{Submissions: post.Expires.Add(-1)}, swarm.Pruned{})
	wantPruned(t, s, swarm.PruneRule{Submissions: post.Expires}, swarm.Pruned{Submissions: 1})
}

func pruneNothing(t *testing.T, s Store) {
	st := endedAt(t, s, "t1", swarm.StateCompleted, hours(1), hours(1))
	wantPruned(t, s, swarm.PruneRule{}, swarm.Pruned{})
	same(t, "turns", recordTurns(t, s, st), []int64{1})
}

// pruneLarge deletes more than any engine would at once, and meanwhile others
// go on.
func pruneLarge(t *testing.T, s Store) {
	st := newTask(alice, "large")
	for range 20 {
		step := st.mutation()
		for range 200 {
			step.Insert = append(step.Insert, st.row("a", "x"))
			step.Events = append(step.Events, st.event("e"))
			step.History = append(step.History, st.note("a", "x"), st.note("b", "y"))
		}
		mustCommit(t, s, step)
	}
	st.task.State = swarm.StateCompleted
	mustCommit(t, s, st.mutation())
	other := oneTask(t, s, alice, "other")
	var f swarm.Footprint
	done := make(chan error, 1)
	go func() {
		_, err := s.Prune(t.Context(), swarm.PruneRule{Tasks: hours(1)})
		done <- err
	}()
	for i := range rounds() {
		commitKV(t, s, other, put(agentScope, "a", fmt.Sprint(i)))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantGone(t, s, st.key())
	f = footprint(t, s, alice.Tenant)
	if f.Tasks != 1 || f.Bytes <= 0 || f.Bytes > 2000 {
		t.Errorf("footprint of what is left is %+v", f)
	}
}

// pruneMoved moves tasks on after they were found to be old.
func pruneMoved(t *testing.T, s Store) {
	running, later := endedAt(t, s, "running", swarm.StateCompleted, hours(1), hours(1)), endedAt(t, s, "later", swarm.StateCompleted, hours(1))
	endedAt(t, s, "gone", swarm.StateCompleted, hours(1))
	wantPruned(t, s, swarm.PruneRule{Tasks: hours(2), Keep: func(k swarm.TaskKey) bool {
		switch k {
		case running.key():
			running.task.State = swarm.StateRunning
			mustCommit(t, s, running.mutation())
		case later.key():
			later.task.State = swarm.StateRunning
			mustCommit(t, s, later.mutation())
			later.task.State = swarm.StateCompleted
			step := later.mutation()
			step.Task.Updated = hours(3)
			mustCommit(t, s, step)
		}
		return false
	}}, swarm.Pruned{Tasks: 1})
	for _, st := range []*taskBuilder{running, later} {
		mustLoad(t, s, st.key())
	}
	same(t, "tasks", footprint(t, s, alice.Tenant).Tasks, int64(2))
}
