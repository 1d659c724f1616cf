package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

var commitCases = cases{
	"all parts are there":            commitWhole,
	"every field of a task is kept":  commitEveryField,
	"a new task needs no submission": commitNewTask,
	"a taken number refuses it all":  commitAllOrNothing,
	"a bad number refuses it all":    commitBadNumber,
	"states are set and cleared":     commitStates,
	"readers see what has returned":  commitVisible,
}

func commitWhole(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", "hello")
	mustAccept(t, s, step, post)

	st.task.State, st.task.Steps = swarm.StateCompleted, 1
	rows := []swarm.Row{st.row("calc", "1+1"), st.row("stats", "mean")}
	events := []swarm.Event{st.event("new_message"), st.event("new_message"), st.event("task_complete")}
	notes := []swarm.AgentEntry{st.note("supervisor", "a"), st.note("calc", "b"), st.note("supervisor", "c")}
	st.task.Finish = swarm.Finish{Cursor: 4, Subject: "done"}
	turn := st.mutation()
	turn.Consume, turn.Insert, turn.Events, turn.History = []int64{1}, rows, events, notes
	turn.States = []swarm.AgentState{{Agent: "supervisor", State: json.RawMessage(`{"n": 1}`)}}
	turn.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k1", Cursor: 4}}
	mustCommit(t, s, turn)

	same(t, "snapshot", mustLoad(t, s, st.key()), swarm.Snapshot{
		Task: turn.Task, Rows: rows,
		States: map[string]json.RawMessage{"supervisor": json.RawMessage(`{"n": 1}`)},
	})
	same(t, "events", mustEvents(t, s, st.key())[1:], events)
	same(t, "history", mustHistory(t, s, st.key(), "supervisor"), []abi.HistoryEntry{notes[0].Entry, notes[2].Entry})
	same(t, "history", mustHistory(t, s, st.key(), "calc"), []abi.HistoryEntry{notes[1].Entry})
	same(t, "answer", mustSubmission(t, s, alice, "rest", "k1").Answer, int64(4))
}

func commitEveryField(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	st.task.Contributors = []string{"user:bob@hive", "swarm:depot@depot"}
	st.task.State = swarm.StatePaused
	st.task.Deadline, st.task.Timeout = start.Add(time.Hour), time.Hour
	st.task.MaxSteps, st.task.Steps, st.task.Grace = 100, 7, true
	st.task.Requests = []swarm.OpenRequest{{ID: "r1", From: "a", To: "b"}}
	st.task.Usage = swarm.Usage{Turns: 3, Fuel: 1 << 63, CPU: time.Second, HostCalls: 9}
	st.task.Finish = swarm.Finish{Cursor: 2, Subject: "::breakpoint::"}
	row := st.row("supervisor", "hello")
	row.Tier, row.Stash, row.Hops, row.Trace, row.Cause = 1, true, 2, someTrace, "m1"
	row.NotBefore, row.Expires = start.Add(time.Minute), start.Add(time.Hour)
	entry := abi.HistoryEntry{
		Seq: 1, Turn: 1, Time: abi.FormatTime(start), Kind: abi.KindCall,
		Call: &abi.Call{ID: "c1", Name: "help", Args: json.RawMessage(`{"a":"<b>"}`)},
	}
	step := st.mutation()
	step.Insert, step.History = []swarm.Row{row}, []swarm.AgentEntry{{Agent: "supervisor", Entry: entry}}
	mustCommit(t, s, step)

	same(t, "snapshot", mustLoad(t, s, st.key()), swarm.Snapshot{Task: step.Task, Rows: step.Insert})
	same(t, "history", mustHistory(t, s, st.key(), "supervisor"), []abi.HistoryEntry{entry})
}

func commitNewTask(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	mustCommit(t, s, st.mutation())
	same(t, "task", mustLoad(t, s, st.key()).Task, st.task)
}

// A step that names a number twice is a fault of its maker. It must not leave
// half of itself behind, whichever part is at fault.
func commitAllOrNothing(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", "hello")
	step.History = []swarm.AgentEntry{st.note("supervisor", "a")}
	step.States = []swarm.AgentState{{Agent: "supervisor", State: json.RawMessage(`1`)}}
	mustAccept(t, s, step, post)
	want := mustLoad(t, s, st.key())

	for name, spoil := range map[string]func(*swarm.Mutation){
		"row":     func(b *swarm.Mutation) { b.Consume, b.Insert[0].N = nil, 1 },
		"event":   func(b *swarm.Mutation) { b.Events[0].Seq = 1 },
		"history": func(b *swarm.Mutation) { b.History[0].Entry.Seq = 1 },
	} {
		bad := newTask(alice, "t1")
		bad.task = st.task
		bad.task.State, bad.task.History = swarm.StateFailed, map[string]int64{"supervisor": 1}
		b := bad.mutation()
		b.Consume, b.Insert = []int64{1}, []swarm.Row{bad.row("calc", "x")}
		b.Events, b.History = []swarm.Event{bad.event("x")}, []swarm.AgentEntry{bad.note("supervisor", "b")}
		b.States = []swarm.AgentState{{Agent: "supervisor", State: json.RawMessage(`2`)}}
		b.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k1", Cursor: 1}}
		spoil(&b)
		if err := s.Commit(t.Context(), b); err == nil {
			t.Errorf("Commit with a taken %s number succeeded", name)
		}
		same(t, "snapshot after a taken "+name, mustLoad(t, s, st.key()), want)
		same(t, "events", seqs(mustEvents(t, s, st.key())), []int64{1})
		same(t, "history", entrySeqs(mustHistory(t, s, st.key(), "supervisor")), []int64{1})
		same(t, "submission", mustSubmission(t, s, alice, "rest", "k1"), post)
	}
}

func commitBadNumber(t *testing.T, s Store) {
	for name, spoil := range map[string]func(*taskBuilder, *swarm.Mutation){
		"row 0":             func(_ *taskBuilder, b *swarm.Mutation) { b.Insert[0].N = 0 },
		"row below 0":       func(_ *taskBuilder, b *swarm.Mutation) { b.Insert[0].N = -1 },
		"consume 0":         func(_ *taskBuilder, b *swarm.Mutation) { b.Consume = []int64{0} },
		"event 0":           func(st *taskBuilder, b *swarm.Mutation) { e := st.event("x"); e.Seq = 0; b.Events = []swarm.Event{e} },
		"stash and unstash": func(_ *taskBuilder, b *swarm.Mutation) { b.Stash, b.Unstash = true, true },
	} {
		st := newTask(alice, name)
		step := st.mutation()
		step.Insert = []swarm.Row{st.row("supervisor", "x")}
		spoil(st, &step)
		if err := s.Commit(t.Context(), step); err == nil {
			t.Errorf("Commit with %s succeeded", name)
		}
		_, err := s.Load(t.Context(), st.key())
		wantError(t, "Load after "+name, err, swarm.ErrNotFound)
	}
}

func commitStates(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	for _, turn := range []struct {
		set  []swarm.AgentState
		want map[string]json.RawMessage
	}{
		{[]swarm.AgentState{{Agent: "a", State: raw(`{"n": 1}`)}, {Agent: "b", State: raw(`"<&>"`)}}, states{"a": raw(`{"n": 1}`), "b": raw(`"<&>"`)}},
		{nil, states{"a": raw(`{"n": 1}`), "b": raw(`"<&>"`)}},
		{[]swarm.AgentState{{Agent: "a", State: raw(`null`)}}, states{"a": raw(`null`), "b": raw(`"<&>"`)}},
		{[]swarm.AgentState{{Agent: "a"}, {Agent: "c"}}, states{"b": raw(`"<&>"`)}},
		{[]swarm.AgentState{{Agent: "a", State: raw(`2`)}, {Agent: "b"}}, states{"a": raw(`2`)}},
	} {
		step := st.mutation()
		step.States = turn.set
		mustCommit(t, s, step)
		same(t, "states", mustLoad(t, s, st.key()).States, turn.want)
	}
}

type states = map[string]json.RawMessage

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func commitVisible(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	for i := range int64(50) {
		step := st.mutation()
		step.Events = []swarm.Event{st.event(fmt.Sprint(i))}
		mustCommit(t, s, step)
		events, err := s.Events(t.Context(), st.key(), i, 1)
		if err != nil || len(events) != 1 || events[0].Seq != i+1 {
			t.Fatalf("Events after %d = %v, %v, want the one just committed", i, events, err)
		}
	}
}
