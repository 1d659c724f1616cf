package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var isolationCases = cases{
	"one task id in many instances": isolationTasks,
	"a step touches its task only":  isolationSteps,
}

// strangers are instances that a careless key would mix up.
var strangers = []swarm.InstanceKey{
	{Tenant: "a", Swarm: "b", Instance: "c"},
	{Tenant: "a", Swarm: "b", Instance: "C"},
	{Tenant: "a", Swarm: "c", Instance: "b"},
	{Tenant: "b", Swarm: "a", Instance: "c"},
	{Tenant: "ab", Swarm: "", Instance: "c"},
	{Tenant: "", Swarm: "ab", Instance: "c"},
	{Tenant: "a", Swarm: "bc", Instance: ""},
	{Tenant: "a\x00b", Swarm: "c", Instance: ""},
	{Tenant: "a", Swarm: "\x00bc", Instance: ""},
	{Tenant: "%", Swarm: "_", Instance: "*"},
	{Tenant: "ä", Swarm: "b", Instance: "c"},
	{Tenant: "a\u0308", Swarm: "b", Instance: "c"},
}

// acceptWithAllParts writes one step with all parts into an instance's task t.
func acceptWithAllParts(t *testing.T, s Store, k swarm.InstanceKey) (*taskBuilder, swarm.Mutation, swarm.Submission) {
	t.Helper()
	st := newTask(k, "t")
	name := k.Tenant + "/" + k.Swarm + "/" + k.Instance
	step, post := st.post("rest", "k", name)
	step.History = []swarm.AgentEntry{st.note("supervisor", name)}
	text, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	step.States = []swarm.AgentState{{Agent: "supervisor", State: text}}
	mustAccept(t, s, step, post)
	return st, step, post
}

func wantWhole(t *testing.T, s Store, st *taskBuilder, step swarm.Mutation, post swarm.Submission) {
	t.Helper()
	same(t, "snapshot", mustLoad(t, s, st.key()), swarm.Snapshot{
		Task: step.Task, Rows: step.Insert, Posts: pending(post), States: states{"supervisor": step.States[0].State},
	})
	same(t, "events", mustEvents(t, s, st.key()), step.Events)
	same(t, "note", mustHistory(t, s, st.key(), "supervisor")[0].Note, step.History[0].Entry.Note)
	same(t, "submission", mustSubmission(t, s, st.key().InstanceKey, "rest", "k"), post)
}

func isolationTasks(t *testing.T, s Store) {
	checks := make([]func(), 0, len(strangers))
	for _, k := range strangers {
		st, step, post := acceptWithAllParts(t, s, k)
		checks = append(checks, func() {
			wantWhole(t, s, st, step, post)
			tasks, err := s.Tasks(t.Context(), k, time.Time{}, everything)
			same(t, "tasks", []any{len(tasks), err}, []any{1, nil})
		})
	}
	for _, check := range checks {
		check()
	}
}

func isolationSteps(t *testing.T, s Store) {
	first, _, _ := acceptWithAllParts(t, s, strangers[0])
	neighbour := newTask(strangers[0], "u")
	in := neighbour.mutation()
	in.Insert = []swarm.Row{neighbour.row("supervisor", "x"), neighbour.row("supervisor", "y")}
	mustCommit(t, s, in)
	other, step, post := acceptWithAllParts(t, s, strangers[1])

	all := first.mutation()
	all.Stash, all.Consume = true, []int64{1}
	all.States = []swarm.AgentState{{Agent: "supervisor"}}
	all.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k", Cursor: 1}}
	mustCommit(t, s, all)

	wantWhole(t, s, other, step, post)
	wantQueue(t, s, neighbour, []int64{1, 2}, nil)
	wantQueue(t, s, first, nil, nil)
}
