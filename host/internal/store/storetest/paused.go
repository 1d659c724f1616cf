package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/swarm"
)

var pausedCases = cases{
	"paused tasks come in pages":         pausedPages,
	"a paused task is listed until then": pausedUntil,
	"a page of large tasks is short":     pausedLarge,
	"paused tasks of an erased tenant":   pausedErased,
}

// pause writes a paused task of an instance.
func pause(t *testing.T, s Store, tenant, instance, id string) *taskBuilder {
	t.Helper()
	st := newTask(swarm.InstanceKey{Tenant: tenant, Swarm: "hive", Instance: instance}, id)
	st.task.State = swarm.StatePaused
	mustCommit(t, s, st.mutation())
	return st
}

// pausedTasks reads all pages as "TENANT INSTANCE TASK", sorted.
func pausedTasks(t *testing.T, s Store, within swarm.InstanceKey, limit int) (list []string) {
	t.Helper()
	for after := ""; ; {
		page, next, err := s.PausedTasks(t.Context(), within, after, limit)
		if err != nil || len(page) > limit || len(page) == 0 && after != "" {
			t.Fatalf("PausedTasks(%q) = %d tasks, %q, %v; want at most %d", after, len(page), next, err, limit)
		}
		for _, task := range page {
			list = append(list, fmt.Sprint(task.Key.Tenant, " ", task.Key.Instance, " ", task.Key.Task))
		}
		if after = next; next == "" {
			slices.Sort(list)
			return list
		}
	}
}

func pausedPages(t *testing.T, s Store) {
	var all []string
	for _, tenant := range []string{"a", "b"} {
		for _, instance := range []string{"swarm:x", "user:u"} {
			for n := range 5 {
				pause(t, s, tenant, instance, name(n))
				all = append(all, fmt.Sprint(tenant, " ", instance, " ", name(n)))
			}
		}
	}
	born(t, s, alice, 1) // runs
	other := alice
	other.Swarm = "other"
	st := newTask(other, "t")
	st.task.State = swarm.StatePaused
	mustCommit(t, s, st.mutation())
	for _, limit := range []int{1, 3, 5, 20, 21} {
		same(t, "all", pausedTasks(t, s, swarm.InstanceKey{Swarm: "hive"}, limit), all)
		same(t, "a tenant's", pausedTasks(t, s, swarm.InstanceKey{Tenant: "b", Swarm: "hive"}, limit), all[10:])
		same(t, "an instance's", pausedTasks(t, s, swarm.InstanceKey{Tenant: "a", Swarm: "hive", Instance: "user:u"}, limit), all[5:10])
	}
	same(t, "no tenant's", len(pausedTasks(t, s, swarm.InstanceKey{Tenant: "c", Swarm: "hive"}, 5)), 0)
	for _, limit := range []int{0, -1} {
		none, next, err := s.PausedTasks(t.Context(), swarm.InstanceKey{Swarm: "hive"}, "", limit)
		same(t, "none wanted", []any{len(none), next, err}, []any{0, "", nil})
	}
	for _, after := range []string{"x", "1", "1.", "1.x", " 1.2", "1.2 ", "01.2", "99999999999999999999.1"} {
		if _, _, err := s.PausedTasks(t.Context(), swarm.InstanceKey{Swarm: "hive"}, after, 1); !errors.Is(err, swarm.ErrInvalid) {
			t.Errorf("after %q: %v, want ErrInvalid", after, err)
		}
	}
}

func pausedUntil(t *testing.T, s Store) {
	st := pause(t, s, alice.Tenant, alice.Instance, "t")
	same(t, "paused", len(pausedTasks(t, s, alice, 5)), 1)
	for _, state := range []swarm.State{swarm.StateRunning, swarm.StateCompleted} {
		st.task.State = state
		mustCommit(t, s, st.mutation())
		same(t, string(state), len(pausedTasks(t, s, alice, 5)), 0)
	}
	st.task.State = swarm.StatePaused
	mustCommit(t, s, st.mutation())
	got, _, err := s.PausedTasks(t.Context(), alice, "", 5)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "paused again", got, []swarm.Task{st.task})
}

func pausedLarge(t *testing.T, s Store) {
	for n := range 3 {
		st := newTask(alice, name(n))
		st.task.State, st.task.Owner = swarm.StatePaused, strings.Repeat("x", swarm.PageBytes)
		mustCommit(t, s, st.mutation())
	}
	page, next, err := s.PausedTasks(t.Context(), alice, "", 3)
	if err != nil || len(page) == 0 || len(page) == 3 || next == "" {
		t.Errorf("%d tasks of a page's bytes, %q, %v", len(page), next, err)
	}
	same(t, "all", len(pausedTasks(t, s, alice, 3)), 3)
}

func pausedErased(t *testing.T, s Store) {
	pause(t, s, "a", "user:u", "t")
	pause(t, s, "b", "user:u", "t")
	if err := s.Erase(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	same(t, "left", pausedTasks(t, s, swarm.InstanceKey{Swarm: "hive"}, 5), []string{"b user:u t"})
}
