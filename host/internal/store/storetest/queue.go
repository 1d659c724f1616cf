package storetest

import (
	"testing"

	"skep/host/internal/swarm"
)

var queueCases = cases{
	"consume takes rows away":             queueConsume,
	"stash flags what the step leaves":    queueStash,
	"unstash frees what the step leaves":  queueUnstash,
	"an inserted row brings its own flag": queueInsertFlag,
	"a consumed number is free again":     queueReplace,
}

// queue gives a task four rows, of which 2 and 4 are in the stash.
func queue(t *testing.T, s Store) *taskBuilder {
	t.Helper()
	st := newTask(alice, "t1")
	rows := []swarm.Row{st.row("a", "1"), st.row("b", "2"), st.row("c", "3"), st.row("d", "4")}
	rows[1].Stash, rows[3].Stash = true, true
	step := st.mutation()
	step.Insert = rows
	mustCommit(t, s, step)
	same(t, "stash", stashed(mustLoad(t, s, st.key()).Rows), []int64{2, 4})
	return st
}

func wantQueue(t *testing.T, s Store, st *taskBuilder, rows, stash []int64) {
	t.Helper()
	got := mustLoad(t, s, st.key()).Rows
	same(t, "rows", numbers(got), rows)
	same(t, "stash", stashed(got), stash)
}

func queueConsume(t *testing.T, s Store) {
	st := queue(t, s)
	step := st.mutation()
	step.Consume = []int64{3, 4}
	mustCommit(t, s, step)
	wantQueue(t, s, st, []int64{1, 2}, []int64{2})
}

func queueStash(t *testing.T, s Store) {
	st := queue(t, s)
	step := st.mutation()
	step.Consume, step.Insert, step.Stash = []int64{1}, []swarm.Row{st.row("e", "5")}, true
	mustCommit(t, s, step)
	wantQueue(t, s, st, []int64{2, 3, 4, 5}, []int64{2, 3, 4})
}

func queueUnstash(t *testing.T, s Store) {
	st := queue(t, s)
	step := st.mutation()
	in := st.row("e", "5")
	in.Stash = true
	step.Consume, step.Insert, step.Unstash = []int64{1}, []swarm.Row{in}, true
	mustCommit(t, s, step)
	wantQueue(t, s, st, []int64{2, 3, 4, 5}, []int64{5})
}

func queueInsertFlag(t *testing.T, s Store) {
	st := queue(t, s)
	step := st.mutation()
	in := st.row("e", "5")
	in.Stash = true
	step.Insert = []swarm.Row{in, st.row("f", "6")}
	mustCommit(t, s, step)
	wantQueue(t, s, st, upTo(1, 6), []int64{2, 4, 5})
}

func queueReplace(t *testing.T, s Store) {
	st := queue(t, s)
	step := st.mutation()
	in := st.row("e", "new")
	in.N = 2
	step.Consume, step.Insert = []int64{2}, []swarm.Row{in}
	mustCommit(t, s, step)
	wantQueue(t, s, st, upTo(1, 4), []int64{4})
	same(t, "body", mustLoad(t, s, st.key()).Rows[1].Message.Payload.Body, "new")
}
