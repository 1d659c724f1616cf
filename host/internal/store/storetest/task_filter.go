package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var taskFilterCases = cases{
	"each filter selects what it says":       filterEach,
	"a task is listed by what it is now":     filterCurrent,
	"a list has no task of an erased tenant": filterErased,
	"a list goes on where a page ended":      filterPlaces,
}

// listAll reads all pages as "TENANT INSTANCE TASK", in their order.
func listAll(t *testing.T, s Store, f swarm.TaskFilter, limit int) (list []string) {
	t.Helper()
	for after := ""; ; {
		page, next, err := s.ListTasks(t.Context(), f, after, limit)
		if err != nil || len(page) > limit {
			t.Fatalf("ListTasks(%+v, %q) = %d tasks, %q, %v; want at most %d", f, after, len(page), next, err, limit)
		}
		for _, task := range page {
			list = append(list, fmt.Sprint(task.Key.Tenant, " ", task.Key.Instance, " ", task.Key.Task))
		}
		if after = next; next == "" {
			return list
		}
	}
}

// mixedTasks writes tasks of several tenants, users, states, entrypoints and costs.
func mixedTasks(t *testing.T, s Store) (all []swarm.Task) {
	t.Helper()
	states := []swarm.State{swarm.StateRunning, swarm.StatePaused, swarm.StateCompleted, swarm.StateFailed, swarm.StateTimedOut, swarm.StateCancelled}
	for n := range 48 {
		key := swarm.InstanceKey{Tenant: []string{"a", "b", "c"}[n%3], Swarm: "hive", Instance: []string{"user:u", "admin:v"}[n/3%2]}
		if n%16 == 5 {
			key.Swarm = "other"
		}
		st := newTask(key, name(n))
		st.task.Created = start.Add(time.Duration(n/2) * time.Second) // two at a time
		st.task.State, st.task.Entrypoint = states[n%len(states)], []string{"boss", "clerk"}[n%5%2]
		if n%4 != 0 {
			st.task.Usage.MicroUSD = int64(n % 7 * 1000)
		}
		mustCommit(t, s, st.mutation())
		all = append(all, st.task)
	}
	return all
}

// expected is what a list must have.
func expected(all []swarm.Task, f swarm.TaskFilter) (list []string) {
	var tasks []swarm.Task
	for _, task := range all {
		if f.Matches(task) {
			tasks = append(tasks, task)
		}
	}
	slices.Reverse(tasks) // the later one of two of the same time or cost is first
	slices.SortStableFunc(tasks, func(a, b swarm.Task) int {
		if f.ByCost {
			return cmp.Compare(b.Usage.MicroUSD, a.Usage.MicroUSD)
		}
		return b.Created.Compare(a.Created)
	})
	for _, task := range tasks {
		list = append(list, fmt.Sprint(task.Key.Tenant, " ", task.Key.Instance, " ", task.Key.Task))
	}
	return list
}

func filterEach(t *testing.T, s Store) {
	all := mixedTasks(t, s)
	whose := []swarm.InstanceKey{{}, {Tenant: "b"}, {Tenant: "b", Instance: "user:u"}, {Tenant: "none"}}
	for _, within := range whose {
		within.Swarm = "hive"
		for _, state := range []swarm.State{"", swarm.StateCompleted, swarm.StateFailed, swarm.StateRunning} {
			for _, agent := range []string{"", "clerk", "none"} {
				for _, since := range []time.Time{{}, start.Add(10 * time.Second)} {
					for _, cost := range []int64{0, 3000} {
						for _, byCost := range []bool{false, true} {
							f := swarm.TaskFilter{InstanceKey: within, State: state, Agent: agent, Since: since, MinMicroUSD: cost, ByCost: byCost}
							same(t, fmt.Sprintf("%+v", f), listAll(t, s, f, 7), expected(all, f))
						}
					}
				}
			}
		}
	}
	f := swarm.TaskFilter{InstanceKey: swarm.InstanceKey{Swarm: "hive"}}
	for _, limit := range []int{1, 44, 45, 46, 500} {
		same(t, "all", listAll(t, s, f, limit), expected(all, f))
	}
}

func filterCurrent(t *testing.T, s Store) {
	st := newTask(alice, "t")
	mustCommit(t, s, st.mutation())
	within := swarm.InstanceKey{Swarm: alice.Swarm}
	check := func(what string) {
		t.Helper()
		for _, f := range []swarm.TaskFilter{
			{InstanceKey: within, State: st.task.State}, {InstanceKey: within, Agent: st.task.Entrypoint},
			{InstanceKey: within, MinMicroUSD: st.task.Usage.MicroUSD}, {InstanceKey: within, Since: st.task.Created},
		} {
			got, _, err := s.ListTasks(t.Context(), f, "", 5)
			if err != nil {
				t.Fatal(err)
			}
			same(t, what, got, []swarm.Task{st.task})
		}
		dear := swarm.TaskFilter{InstanceKey: within, ByCost: true}
		same(t, what+", dear", len(listAll(t, s, dear, 5)) == 1, st.task.Usage.MicroUSD > 0)
		other := swarm.TaskFilter{InstanceKey: within, State: swarm.StateTimedOut}
		same(t, what+", not", len(listAll(t, s, other, 5)), 0)
	}
	check("new")
	st.task.Usage.MicroUSD = 5
	mustCommit(t, s, st.mutation())
	check("paid")
	st.task.State = swarm.StateCompleted
	mustCommit(t, s, st.mutation())
	check("completed")
	st.task.State, st.task.Entrypoint, st.task.Created, st.task.Usage.MicroUSD = swarm.StateRunning, "clerk", start.Add(time.Hour), 9
	mustCommit(t, s, st.mutation())
	check("reopened")
}

func filterErased(t *testing.T, s Store) {
	all := mixedTasks(t, s)
	if err := s.Erase(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(task swarm.Task) bool { return task.Key.Tenant == "b" })
	for _, f := range []swarm.TaskFilter{
		{}, {ByCost: true}, {State: swarm.StateFailed}, {Agent: "clerk"}, {InstanceKey: swarm.InstanceKey{Tenant: "b"}},
		{InstanceKey: swarm.InstanceKey{Tenant: "b", Instance: "user:u"}},
	} {
		f.Swarm = "hive"
		same(t, fmt.Sprintf("%+v", f), listAll(t, s, f, 5), expected(all, f))
	}
}

func filterPlaces(t *testing.T, s Store) {
	all := mixedTasks(t, s)
	f := swarm.TaskFilter{InstanceKey: swarm.InstanceKey{Swarm: "hive"}}
	first, next, err := s.ListTasks(t.Context(), f, "", 3)
	if err != nil || len(first) != 3 || next == "" {
		t.Fatalf("ListTasks() = %d, %q, %v", len(first), next, err)
	}
	born(t, s, alice, 100) // newer than all: it is on no later page
	rest, _, err := s.ListTasks(t.Context(), f, next, 500)
	same(t, "the rest", []any{len(first) + len(rest), err}, []any{len(expected(all, f)), nil})
	for _, limit := range []int{0, -1} {
		none, next, err := s.ListTasks(t.Context(), f, "", limit)
		same(t, "none wanted", []any{len(none), next, err}, []any{0, "", nil})
	}
	for _, after := range []string{"x", "1", "1.", "1.x", " 1.2", "1.2 ", "01.2", "99999999999999999999.1"} {
		if _, _, err := s.ListTasks(t.Context(), f, after, 1); !errors.Is(err, swarm.ErrInvalid) {
			t.Errorf("after %q: %v, want ErrInvalid", after, err)
		}
	}
}
