package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// shareSlots opens hosts that share a server and all slots.
func shareSlots(t *testing.T, n int) (hosts []*Store) {
	t.Helper()
	dsn := pgtest.Schema(t)
	for range n {
		hosts = append(hosts, openShared(t, dsn))
	}
	for i, s := range hosts {
		const text = "INSERT INTO slots SELECT g, CAST(? AS BIGINT) FROM generate_series(0, CAST(? AS INTEGER)) g WHERE g % CAST(? AS INTEGER) = CAST(? AS INTEGER)"
		if _, err := s.keyring.db.ExecContext(t.Context(), text, s.HID(), int(slot.Count)-1, n, i); err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

// hostOf is the host that has the slot of a task.
func hostOf(hosts []*Store, task string) *Store { return hosts[int(slotOf(testKey(task)))%len(hosts)] }

// mostOpen is how many tasks of the tenant are open at a time in these tests, mostBytes how much it stores.
const mostOpen, mostBytes = 8, 40_000

// admit posts a message that starts a task, within bounds.
func admit(t *testing.T, s *Store, task string, bounds swarm.AdmissionBounds, body []byte) error {
	t.Helper()
	m := testStep(task, 1)
	m.Insert = []swarm.Row{{N: 1, Agent: "supervisor", Message: upgradeMessage(1)}}
	m.Admission = &swarm.Admission{Starts: true, Rows: 1, Keeps: true, Bounds: bounds}
	m.States = []swarm.AgentState{{Agent: "a", State: body}}
	_, err := s.Accept(t.Context(), m, testPost(task, 1))
	has := m.Admission.Has
	if errors.Is(err, swarm.ErrQuota) && (has == (swarm.TenantUse{}) || has.Running > mostOpen || has.Bytes > mostBytes) {
		t.Errorf("task %s: refused because the tenant has %+v", task, has)
	}
	return err
}

// openTasks is how many tasks of the tenant run.
func openTasks(t *testing.T, s *Store) (open int) {
	t.Helper()
	running, err := s.CountRunning(t.Context(), []string{"without tasks", testInstance.Tenant})
	if err != nil || running["without tasks"] != 0 {
		t.Fatal(running, err)
	}
	return running[testInstance.Tenant]
}

// TestSharedTasks: however many callers post at three hosts at once, a tenant never has more tasks
// open than it may, and has as many as it may.
func TestSharedTasks(t *testing.T) {
	t.Parallel()
	hosts := shareSlots(t, 3)
	const bound, callers, each = 7, 64, 3
	var all sync.WaitGroup
	var accepted atomic.Int64
	for c := range callers {
		all.Go(func() {
			for n := range each {
				task := fmt.Sprint("t", c, "-", n)
				switch err := admit(t, hostOf(hosts, task), task, swarm.AdmissionBounds{Tasks: bound}, nil); {
				case err == nil:
					accepted.Add(1)
				case !errors.Is(err, swarm.ErrQuota):
					t.Error(err)
				}
				if open := openTasks(t, hosts[n%3]); open > bound {
					t.Errorf("%d tasks are open", open)
				}
			}
		})
	}
	all.Wait()
	if open := openTasks(t, hosts[0]); open != bound || accepted.Load() != bound {
		t.Errorf("%d tasks are open, %d accepted; want %d", open, accepted.Load(), bound)
	}
	// What is accepted without a bound counts, and a lower bound of another host holds at once.
	if err := admit(t, hostOf(hosts, "free"), "free", swarm.AdmissionBounds{}, nil); err != nil {
		t.Error(err)
	}
	if err := admit(t, hostOf(hosts, "lower"), "lower", swarm.AdmissionBounds{Tasks: bound - 3}, nil); !errors.Is(err, swarm.ErrQuota) {
		t.Errorf("beyond a bound that was made lower: %v", err)
	}
	if err := admit(t, hostOf(hosts, "higher"), "higher", swarm.AdmissionBounds{Tasks: bound + 2}, nil); err != nil {
		t.Errorf("within a bound that was made higher: %v", err)
	}
}

// TestSharedTasksOfDeadHost: the tasks of a host that is dead stay open, and once another one has
// ended them there is room for as many.
func TestSharedTasksOfDeadHost(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	lost, lives := openShared(t, dsn), openShared(t, dsn)
	give(t, lost, "a", "b")
	give(t, lives, "c")
	bounds := swarm.AdmissionBounds{Tasks: 2}
	for _, task := range []string{"a", "b"} {
		if err := admit(t, lost, task, bounds, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := lives.keyring.db.ExecContext(t.Context(), "UPDATE hosts SET dead = true WHERE hid = ?", lost.HID()); err != nil {
		t.Fatal(err)
	}
	if err := admit(t, lives, "c", bounds, nil); !errors.Is(err, swarm.ErrQuota) {
		t.Errorf("while the tasks of the dead host are open: %v", err)
	}
	give(t, lives, "a")
	end := testStep("a", 1)
	end.Task.State, end.Events = swarm.StateCompleted, nil
	if err := lives.Commit(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	if err := admit(t, lives, "c", bounds, nil); err != nil {
		t.Error(err)
	}
}

// TestSharedStorage: posts at three hosts at once never store more than their tenant may, nor make
// more messages of a day.
func TestSharedStorage(t *testing.T) {
	t.Parallel()
	for name, bounds := range map[string]swarm.AdmissionBounds{"storage": {Storage: mostBytes / 2}, "messages": {MessagesPerDay: 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosts := shareSlots(t, 3)
			body := []byte(`"` + fmt.Sprintf("%01000d", 1) + `"`)
			var all sync.WaitGroup
			var accepted atomic.Int64
			for c := range 64 {
				all.Go(func() {
					task := fmt.Sprint("t", c)
					err := admit(t, hostOf(hosts, task), task, bounds, body)
					if err == nil {
						accepted.Add(1)
					} else if !errors.Is(err, swarm.ErrQuota) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			f, err := hosts[0].Footprint(t.Context(), testInstance.Tenant)
			if err != nil {
				t.Fatal(err)
			}
			if bounds.Storage > 0 && (f.Bytes > bounds.Storage || f.Bytes < bounds.Storage/2) {
				t.Errorf("%d bytes are stored of %d", f.Bytes, bounds.Storage)
			}
			if bounds.MessagesPerDay > 0 && (f.Made != bounds.MessagesPerDay || accepted.Load() != f.Made) {
				t.Errorf("%d messages are made, %d posts accepted, of %d", f.Made, accepted.Load(), bounds.MessagesPerDay)
			}
		})
	}
}

// TestSharedAdmissionRepeated: who repeats a post at the bound gets the post that was accepted.
func TestSharedAdmissionRepeated(t *testing.T) {
	t.Parallel()
	s := shareSlots(t, 1)[0]
	bounds := swarm.AdmissionBounds{Tasks: 1}
	if err := admit(t, s, "a", bounds, nil); err != nil {
		t.Fatal(err)
	}
	m := testStep("a", 1)
	m.Admission = &swarm.Admission{Starts: true, Rows: 1, Keeps: true, Bounds: bounds}
	if first, err := s.Accept(t.Context(), m, testPost("a", 1)); !errors.Is(err, swarm.ErrDuplicate) || first.Task != "a" {
		t.Errorf("Accept() = %+v, %v", first, err)
	}
}
