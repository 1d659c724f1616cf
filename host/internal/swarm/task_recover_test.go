package swarm

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// While one task is being loaded, others are answered: new ones, and tasks of the
// earlier host that are not loaded yet.
func TestAnswersWhileTasksLoad(t *testing.T) {
	t.Parallel()
	slow, left := taskOf("tenant0", "busy", "slow"), taskOf("tenant0", "busy", "left")
	store := newLegacy(slow, left)
	release := store.hold(slow)
	r, stop := begin(t, store, Options{})
	if key := <-store.loading; key != slow {
		t.Fatalf("%v is loaded first", key)
	}
	mustAnswer(t, r, taskOf("tenant0", "busy", "new"))
	mustAnswer(t, r, taskOf("tenant1", "alice", "new"))
	mustAnswer(t, r, left)
	if store.state(slow) != StateRunning || store.state(left) != StateCompleted {
		t.Errorf("the tasks are %s and %s", store.state(slow), store.state(left))
	}
	release()
	wantRest(t, r)
	if store.state(slow) != StateCompleted {
		t.Errorf("the task that was slow is %s", store.state(slow))
	}
	if err := stop(); err != nil {
		t.Error("Run:", err)
	}
}

// A task counts as running before it is loaded.
func TestRunningTasksCount(t *testing.T) {
	t.Parallel()
	slow := taskOf("tenant0", "busy", "slow")
	store := newLegacy(slow)
	release := store.hold(slow)
	r, _ := begin(t, store, Options{Tenants: NewTenantSet(map[string]Tenant{"tenant0": {Quota: Quota{Tasks: 1}}})})
	<-store.loading
	if st, err := r.Status(t.Context(), slow.InstanceKey); err != nil || !st.Running {
		t.Errorf("the status is %+v, %v", st, err)
	}
	if _, err := postTo(r, taskOf("tenant0", "other", "new")); !errors.Is(err, ErrLimit) {
		t.Errorf("a post beyond the quota of one task = %v", err)
	}
	release()
	wantRest(t, r)
	mustAnswer(t, r, taskOf("tenant0", "other", "new"))
}

// What waits in a task counts before it is loaded.
func TestRunningRowsCount(t *testing.T) {
	t.Parallel()
	slow := taskOf("tenant0", "busy", "slow")
	store := newLegacy(slow)
	release := store.hold(slow)
	r, _ := begin(t, store, Options{Tenants: NewTenantSet(map[string]Tenant{"tenant0": {Quota: Quota{Queue: 1}}})})
	<-store.loading
	if _, err := postTo(r, taskOf("tenant0", "other", "new")); !errors.Is(err, ErrLimit) {
		t.Errorf("a post beyond the quota of one message = %v", err)
	}
	mustAnswer(t, r, taskOf("tenant1", "other", "new"))
	release()
	wantRest(t, r)
	mustAnswer(t, r, taskOf("tenant0", "other", "new"))
}

// A task that was posted to before the runtime runs is not counted twice, however
// often it is taken up.
func TestPostBeforeClaim(t *testing.T) {
	t.Parallel()
	key := taskOf("tenant0", "busy", "left")
	store := newLegacy(key)
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postTo(r, key); err != nil {
		t.Fatal(err)
	}
	found, err := r.countRunningTasks(t.Context())
	if err != nil || !slices.Equal(found, []TaskKey{key}) {
		t.Fatalf("found are %v, %v", found, err)
	}
	for range 2 {
		if tl := r.tenantLoads["tenant0"]; len(r.parked) > 0 || tl == nil || tl.load != (load{1, 2}) {
			t.Errorf("%d tasks are parked, the ledger has %+v", len(r.parked), tl)
		}
		if err := r.recoverTasks(t.Context(), found); err != nil {
			t.Error(err)
		}
	}
}

// deaths is a run set with suspects that counts the cleared ones.
type deaths struct {
	RunSet
	by      map[TurnID]int
	cleared []TurnID
}

func (d *deaths) Suspects() map[TurnID]int { return d.by }
func (d *deaths) Forget(id TurnID)         { d.cleared = append(d.cleared, id) }

// A suspect stays one when a post has taken its task up before recovery does.
func TestPostKeepsSuspects(t *testing.T) {
	t.Parallel()
	key := taskOf("tenant0", "busy", "left")
	store := newLegacy(key)
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	second := r.turnID(store.tasks[key].Task, 2)
	set := &deaths{by: map[TurnID]int{second: 1, {1}: 1}}
	r.suspects = newSuspectGate(set)
	if _, err := postTo(r, key); err != nil { // its message waits behind the first
		t.Fatal(err)
	}
	if err := r.recoverTasks(t.Context(), []TaskKey{key}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]TurnID{{1}}, set.cleared); diff != "" {
		t.Errorf("suspects that were cleared (-want +got):\n%s", diff)
	}
}

// A task that is gone by the time it would be loaded is no reason to stop.
func TestRecoverErased(t *testing.T) {
	t.Parallel()
	for _, why := range []error{ErrNotFound, refuse(ErrErasing, "tenant0 is being erased")} {
		gone, left := taskOf("tenant0", "u", "torn"), taskOf("tenant1", "u", "left")
		store := &torn{newLegacy(gone, left), why}
		_, stop := begin(t, store, Options{})
		for deadline := time.Now().Add(time.Minute); store.state(left) != StateCompleted; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the task after one that answers %v is %s", why, store.state(left))
			}
		}
		if err := stop(); err != nil {
			t.Errorf("Run() = %v after a load = %v", err, why)
		}
	}
}

// A task that cannot be loaded is set aside: others go on, no quota counts it, posts to
// it get an error, and its tenant can be erased.
func TestDamagedTaskIsSetAside(t *testing.T) {
	t.Parallel()
	bad, whole := taskOf("tenant0", "u", "torn"), taskOf("tenant1", "u", "whole")
	store := &torn{newLegacy(bad, whole), errTorn}
	var log bytes.Buffer
	r, stop := begin(t, store, Options{
		Tenants: NewTenantSet(map[string]Tenant{"tenant0": {Quota: Quota{Tasks: 1}}}),
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
	})
	for deadline := time.Now().Add(time.Minute); store.state(whole) != StateCompleted || r.CountDamaged() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the other task is %s, %d damaged", store.state(whole), r.CountDamaged())
		}
	}
	wantRest(t, r)
	if store.state(bad) != StateRunning {
		t.Errorf("the damaged task is %s", store.state(bad))
	}
	if _, err := postTo(r, bad); !errors.Is(err, errTorn) {
		t.Errorf("a post to a damaged task = %v", err)
	}
	mustAnswer(t, r, taskOf("tenant0", "u", "new"))
	if err := r.EraseTenant(t.Context(), "tenant0", nil); err != nil || r.CountDamaged() != 0 {
		t.Errorf("Erase() = %v, %d damaged", err, r.CountDamaged())
	}
	if err := stop(); err != nil {
		t.Error("Run:", err)
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "task_id=torn") {
		t.Errorf("the log has %s", text)
	}
}

// What is set aside is taken up once it can be read.
func TestDamagedTaskHeals(t *testing.T) {
	t.Parallel()
	bad := taskOf("tenant0", "u", "torn")
	store := &torn{newLegacy(bad), errTorn}
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.countRunningTasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.recoverTasks(t.Context(), found); err != nil || r.CountDamaged() != 1 {
		t.Fatalf("recover() = %v, %d damaged", err, r.CountDamaged())
	}
	store.why = nil
	if _, err := postTo(r, bad); err != nil || r.CountDamaged() != 0 {
		t.Errorf("a post = %v, %d damaged", err, r.CountDamaged())
	}
	if tl := r.tenantLoads["tenant0"]; tl == nil || tl.load != (load{1, 2}) {
		t.Errorf("the ledger has %+v", tl)
	}
}

// A task that was not loaded yet, and cannot be, does not keep its tenant from being
// erased.
func TestEraseBeforeDamageIsSeen(t *testing.T) {
	t.Parallel()
	bad := taskOf("tenant0", "u", "torn")
	r, err := New(t.Context(), &torn{newLegacy(bad), errTorn}, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.countRunningTasks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.EraseTenant(t.Context(), "tenant0", nil); err != nil || len(r.parked) != 0 {
		t.Errorf("Erase() = %v, %d parked", err, len(r.parked))
	}
}

// A store that another host has taken over ends the run.
func TestRecoverFenced(t *testing.T) {
	t.Parallel()
	store := &torn{newLegacy(taskOf("tenant0", "u", "whole"), taskOf("tenant0", "u", "torn")), ErrFenced}
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(t.Context(), time.Second)
	if !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), `"torn"`) {
		t.Errorf("Run() = %v", err)
	}
}

var errTorn = errors.New("cannot be read")

type torn struct {
	*legacy
	why error
}

func (s *torn) Load(ctx context.Context, key TaskKey) (Snapshot, error) {
	if key.Task == "torn" && s.why != nil {
		return Snapshot{}, s.why
	}
	return s.legacy.Load(ctx, key)
}

func (*torn) HasData(context.Context, string) (bool, error) { return true, nil }
func (*torn) Erase(context.Context, string) error           { return nil }

// A store that cannot list the running tasks ends the run before any turn.
func TestClaimFails(t *testing.T) {
	t.Parallel()
	r, err := New(t.Context(), &blind{newLegacy()}, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), time.Second); !errors.Is(err, errTorn) {
		t.Errorf("Run() = %v", err)
	}
}

type blind struct{ *legacy }

func (*blind) RunningTasks(context.Context) ([]RunningTask, error) { return nil, errTorn }

// A stop does not wait for tasks that are not loaded yet.
func TestStopWhileTasksLoad(t *testing.T) {
	t.Parallel()
	slow := taskOf("tenant0", "busy", "slow")
	store := newLegacy(slow)
	defer store.hold(slow)()
	_, stop := begin(t, store, Options{})
	<-store.loading
	if err := stop(); err != nil {
		t.Error("Run:", err)
	}
	if store.state(slow) != StateRunning {
		t.Errorf("the task is %s", store.state(slow))
	}
}

func TestTakeTurns(t *testing.T) {
	t.Parallel()
	var keys []TaskKey
	for _, id := range []string{"a/x/1", "a/x/2", "a/x/3", "a/y/4", "a/y/5", "b/z/6", "b/z/7", "c/u/8", "c/v/9"} {
		p := strings.Split(id, "/")
		keys = append(keys, taskOf(p[0], p[1], p[2]))
	}
	var got []string
	for _, key := range interleaveTasks(keys) {
		got = append(got, key.Tenant+strings.TrimPrefix(key.Instance, "user:")+key.Task)
	}
	want := []string{"ax1", "bz6", "cu8", "ay4", "cv9", "bz7", "ax2", "ay5", "ax3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
