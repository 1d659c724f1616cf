package storetest

import (
	"errors"
	"fmt"
	"testing"

	"skep/host/internal/swarm"
)

// postEvery is how often a step of a task that advances is a post.
const postEvery = 3

// isPost reports whether the n-th step is one, and returns its key.
func isPost(task string, n int64) (key string, ok bool) {
	if n == 1 {
		return task, true
	}
	return fmt.Sprint(task, "/", n), n%postEvery == 1
}

// turn makes the n-th step of a task that advances: it consumes row n-1 and
// brings row, event, history entry and state n. The first is a post, and so are
// others; the next step answers them.
func turn(task string, n int64) (swarm.Mutation, swarm.Submission) {
	st := newTask(alice, task)
	st.task.Rows, st.task.Cursor, st.task.History["supervisor"] = n-1, n-1, n-1
	id, _ := isPost(task, n)
	step, post := st.post("rest", id, fmt.Sprint("turn ", n))
	note := st.note("supervisor", fmt.Sprint("turn ", n))
	step.Task.History["supervisor"] = n
	step.History = []swarm.AgentEntry{note}
	step.States = []swarm.AgentState{{Agent: "supervisor", State: raw(fmt.Sprint(n))}}
	if n > 1 {
		step.Consume = []int64{n - 1}
		step.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: task, Cursor: n}}
	}
	if last, ok := isPost(task, n-1); ok && n > 2 {
		step.Answers = append(step.Answers, swarm.SubmissionAnswer{Door: "rest", Key: last, Cursor: n})
	}
	return step, post
}

// takeTurn takes one turn of a task that advances. From the second on each journals
// its first entry before it commits, unless an earlier attempt has done so.
func takeTurn(t *testing.T, s Store, task string, n int64) error {
	step, post := turn(task, n)
	if n == 1 {
		_, err := s.Accept(t.Context(), step, post)
		return err
	}
	_, err := s.Record(t.Context(), step.Task.Key, n)
	if errors.Is(err, swarm.ErrNotFound) {
		_, err = s.Journal(t.Context(), step.Task.Key, n, swarm.JournalWrite{Header: header("supervisor"), Entries: calls(1, 1)})
	}
	if err != nil {
		return err
	}
	step.Record = &swarm.Record{N: n, Entries: calls(2, 2), End: end("ok")}
	if _, ok := isPost(task, n); ok {
		_, err := s.Accept(t.Context(), step, post)
		return err
	}
	return s.Commit(t.Context(), step)
}

// advance takes a task to turn n from wherever it is.
func advance(t *testing.T, s Store, task string, n int) {
	for i := position(t, s, task) + 1; i <= int64(n); i++ {
		if err := takeTurn(t, s, task, i); err != nil {
			t.Errorf("turn %d of %s: %v", i, task, err)
			return
		}
	}
}

// position returns the turn a task is at, 0 for one that does not exist.
func position(t *testing.T, s Store, task string) int64 {
	snap, err := s.Load(t.Context(), swarm.TaskKey{InstanceKey: alice, Task: task})
	if err != nil && !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("Load(%s) = %v", task, err)
	}
	return snap.Task.Cursor
}

// wantAdvanced asserts that a task has taken a number of turns between two
// bounds, and each of them whole.
func wantAdvanced(t *testing.T, s Store, key swarm.TaskKey, least, most int64) {
	t.Helper()
	n := position(t, s, key.Task)
	if n < least || n > most {
		t.Errorf("task %s is at turn %d, want %d to %d", key.Task, n, least, most)
	}
	if n == 0 {
		return
	}
	step, post := turn(key.Task, n)
	want := swarm.Snapshot{Task: step.Task, Rows: step.Insert, States: states{"supervisor": raw(fmt.Sprint(n))}}
	if _, ok := isPost(key.Task, n); ok {
		want.Posts = pending(post)
	}
	same(t, "snapshot", mustLoad(t, s, key), want)
	same(t, "events", seqs(mustEvents(t, s, key)), upTo(1, n))
	same(t, "history", entrySeqs(mustHistory(t, s, key, "supervisor")), upTo(1, n))
	_, post = turn(key.Task, 1)
	if n > 1 {
		post.Answer = n
		same(t, "record", mustRecord(t, s, key, n), swarm.Record{N: n, Header: header("supervisor"), Entries: calls(1, 2), End: end("ok")})
	}
	next, err := s.Record(t.Context(), key, n+1)
	if err == nil {
		same(t, "record of a turn cut short", next, swarm.Record{N: n + 1, Header: header("supervisor"), Entries: calls(1, 1)})
	} else {
		wantError(t, "Record of the next turn", err, swarm.ErrNotFound)
	}
	same(t, "submission", mustSubmission(t, s, alice, "rest", key.Task), post)
}
