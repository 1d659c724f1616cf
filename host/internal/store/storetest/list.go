package storetest

import (
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var listCases = cases{
	"tasks come in pages, newest first": listPages,
	"a task is listed as it is now":     listCurrent,
	"instances that have tasks":         listInstances,
	"many tasks":                        listMany,
}

// born writes the record of a task created n seconds after the start.
func born(t *testing.T, s Store, instance swarm.InstanceKey, n int) swarm.Task {
	t.Helper()
	st := newTask(instance, name(n))
	st.task.Created = start.Add(time.Duration(n) * time.Second)
	mustCommit(t, s, st.mutation())
	return st.task
}

func listPages(t *testing.T, s Store) {
	bob := alice
	bob.Instance = "user:bob"
	want := make([]swarm.Task, 10)
	for _, n := range []int{3, 9, 0, 1, 7, 2, 8, 4, 6, 5} {
		want[9-n] = born(t, s, alice, n)
		born(t, s, bob, n)
	}
	var got []swarm.Task
	var before time.Time
	for {
		page, err := s.Tasks(t.Context(), alice, before, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > 3 {
			t.Fatalf("Tasks() = %d records, want at most 3", len(page))
		}
		if len(page) == 0 {
			break
		}
		got, before = append(got, page...), page[len(page)-1].Created
	}
	same(t, "tasks", got, want)

	for _, limit := range []int{0, -1} {
		none, err := s.Tasks(t.Context(), alice, time.Time{}, limit)
		same(t, "tasks, none wanted", []any{len(none), err}, []any{0, nil})
	}
}

func listCurrent(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	mustCommit(t, s, st.mutation())
	st.task.State, st.task.Steps, st.task.Created = swarm.StateFailed, 5, start.Add(time.Hour)
	mustCommit(t, s, st.mutation())
	got, err := s.Tasks(t.Context(), alice, start.Add(time.Hour+1), 10)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "tasks", got, []swarm.Task{st.task})
}

func listInstances(t *testing.T, s Store) {
	var want []swarm.InstanceKey
	for _, instance := range []string{"admin:root", "user:alice", "user:bob"} {
		k := alice
		k.Instance = instance
		born(t, s, k, 1)
		born(t, s, k, 2)
		want = append(want, k)
	}
	for _, k := range []swarm.InstanceKey{
		{Tenant: "other", Swarm: alice.Swarm, Instance: "user:eve"},
		{Tenant: alice.Tenant, Swarm: "other", Instance: "user:eve"},
	} {
		born(t, s, k, 1)
	}
	got, err := s.Instances(t.Context(), alice.Tenant, alice.Swarm)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "instances", set(got), set(want))
	if len(got) != len(want) {
		t.Errorf("Instances() = %v, want each once", got)
	}
}

func listMany(t *testing.T, s Store) {
	tasks := 10_000
	if testing.Short() {
		tasks = 1000
	}
	runConcurrently(t, 16, tasks, func(i int) error {
		st := newTask(alice, name(i))
		st.task.Created = start.Add(time.Duration(i))
		step, post := st.post("rest", name(i), "hello")
		_, err := s.Accept(t.Context(), step, post)
		return err
	})
	got, err := s.Tasks(t.Context(), alice, time.Time{}, everything)
	if err != nil || len(got) != tasks {
		t.Fatalf("Tasks() = %d records, %v, want %d", len(got), err, tasks)
	}
	for i, task := range got {
		if want := name(tasks - 1 - i); task.Key.Task != want {
			t.Fatalf("task %d of the list is %q, want %q", i, task.Key.Task, want)
		}
	}
	running, err := s.RunningTasks(t.Context())
	if err != nil || len(running) != tasks {
		t.Errorf("Claim() = %d tasks, %v, want %d", len(running), err, tasks)
	}
}
