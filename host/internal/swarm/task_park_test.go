package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// instanceStore is a store that keeps which instances there are, and nothing else.
type instanceStore struct {
	Store
	mu    sync.Mutex
	known map[InstanceKey]bool
	tasks map[TaskKey]Snapshot // if set, running tasks are kept as well
}

func (s *instanceStore) keep(step Mutation) {
	if s.tasks == nil {
		return
	}
	snap := s.tasks[step.Task.Key]
	snap.Task = step.Task.clone()
	snap.Rows = append(slices.Clone(snap.Rows), step.Insert...)
	snap.Rows = slices.DeleteFunc(snap.Rows, func(r Row) bool { return slices.Contains(step.Consume, r.N) })
	s.tasks[step.Task.Key] = snap
}

func (s *instanceStore) Secret(context.Context) ([]byte, error) { return make([]byte, 32), nil }

func (s *instanceStore) Accept(_ context.Context, step Mutation, sub Submission) (Submission, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[step.Task.Key.InstanceKey] = true
	s.keep(step)
	return sub, nil
}

func (s *instanceStore) Tasks(_ context.Context, key InstanceKey, _ time.Time, _ int) ([]Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] {
		return make([]Task, 1), nil
	}
	return nil, nil
}

func (s *instanceStore) Instances(_ context.Context, tenant, swarm string) (found []InstanceKey, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.known {
		if key.Tenant == tenant && key.Swarm == swarm {
			found = append(found, key)
		}
	}
	return found, nil
}

func (s *instanceStore) Footprint(context.Context, string) (Footprint, error) {
	return Footprint{}, nil
}
func (s *instanceStore) Commit(_ context.Context, step Mutation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(step)
	return nil
}

func (s *instanceStore) RunningTasks(context.Context) ([]RunningTask, error) { return nil, nil }
func (s *instanceStore) Load(_ context.Context, key TaskKey) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap, ok := s.tasks[key]; ok {
		return snap, nil
	}
	return Snapshot{}, ErrNotFound
}

func (s *instanceStore) HistoryTail(context.Context, TaskKey, string, int, int) ([]abi.HistoryEntry, error) {
	return nil, nil
}

func (s *instanceStore) Purge(context.Context, time.Time) (int64, error)  { return 0, nil }
func (s *instanceStore) Prune(context.Context, PruneRule) (Pruned, error) { return Pruned{}, nil }

// completer is an agent that completes at once.
type completer struct{}

func (completer) Execute(_ context.Context, t *Turn) Outcome {
	args, _ := json.Marshal(map[string]string{"finish_message": "done"})
	if _, fault := t.CallMailTool(abi.MailRequest{Tool: mail.ToolTaskComplete, Args: args}); fault != nil {
		return Outcome{Failure: &Failure{Cause: "test", Message: fault.Error()}}
	}
	return Outcome{}
}

type noTools struct{}

func (noTools) Tools() []abi.Tool {
	return []abi.Tool{{Name: mail.ToolTaskComplete, Parameters: json.RawMessage(`{}`)}}
}
func (noTools) ToolArgs(string, []byte) error { return nil }

func manyDefinitions(n int) []Definition {
	agents := []Agent{{Name: "boss", Entrypoint: true, CanComplete: true}}
	defs := make([]Definition, n)
	for i := range defs {
		defs[i] = Definition{
			Tenant: fmt.Sprint("tenant", i), Name: "hive", Entrypoint: "boss", Agents: agents,
			Limits: Limits{Instances: 10},
		}
	}
	return defs
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Tenants and instances in which nothing goes on take hardly any memory, however
// many there were, and come back as if they had never been away (G-63).
func TestParkedTakeLittleMemory(t *testing.T) {
	const n = 10_000
	store := &instanceStore{known: make(map[InstanceKey]bool, 2*n)}
	before := inUse()
	defs := manyDefinitions(n)
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, defs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	perTenant := (inUse() - before) / n
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := r.Run(ctx, time.Second); err != nil {
			t.Error(err)
		}
	})
	post := func(i int, user string) {
		p := Post{
			Principal: Principal{Tenant: defs[i].Tenant, Role: mail.RoleUser, ID: user},
			Swarm:     "hive", Door: "test", Type: mail.Request, Subject: "s", Body: "b",
		}
		receipt, err := r.Submit(ctx, p)
		if err == nil {
			_, err = r.Wait(ctx, receipt)
		}
		if err != nil {
			t.Errorf("post of tenant %d: %v", i, err)
		}
	}
	post(0, "alice")
	before = inUse()
	for i := range n {
		post(i, "alice")
	}
	perParked := (inUse() - before) / n
	t.Logf("%d bytes for a tenant as such, %d more for one with a parked instance", perTenant, perParked)
	if perTenant > 1000 || perParked > 500 {
		t.Errorf("a tenant takes %d bytes, and %d more when it is parked", perTenant, perParked)
	}
	for i := range 5 {
		post(i, "alice")
		if st, err := r.Status(ctx, Principal{defs[i].Tenant, mail.RoleUser, "alice"}.Instance("hive")); err != nil || st.Users != 1 || !st.Ready {
			t.Errorf("status of tenant %d is %+v, %v", i, st, err)
		}
	}
	cancel()
	run.Wait()
	if len(r.tasks) > 0 || len(r.tenantLoads) > 0 || len(r.instances) > maxIdle {
		t.Errorf("in memory are %d tasks, %d ledgers and %d instances", len(r.tasks), len(r.tenantLoads), len(r.instances))
	}
	runtime.KeepAlive(store)
}

// An instance that was let go of is counted once when it comes back.
func TestParkedAreCountedOnce(t *testing.T) {
	store := &instanceStore{known: map[InstanceKey]bool{}}
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	def, _ := r.definition("tenant0", "hive")
	visit := func(id string) error {
		key := InstanceKey{"tenant0", "hive", "user:" + id}
		if err := r.reserveInstance(t.Context(), newActiveTask(TaskKey{key, "t"}, def), 1); err != nil {
			return err
		}
		r.mu.Lock()
		r.addLoad(key, load{})
		r.mu.Unlock()
		store.known[key] = true
		r.releaseInstance(key, 1)
		clear(r.idle)
		clear(r.instances)
		return nil
	}
	for range 3 {
		for i := range 10 {
			if err := visit(fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := visit("one too many"); err == nil {
		t.Error("the limit of 10 instances does not hold")
	}
	// The store may forget some; the next count finds out.
	delete(store.known, InstanceKey{"tenant0", "hive", "user:3"})
	r.instanceCounts[swarmKey{"tenant0", "hive"}].at = time.Time{}
	if err := visit("one more"); err != nil {
		t.Error("a place that is free again:", err)
	}
}

// sleeper sets a timer and ends its turn.
type sleeper struct{}

func (sleeper) Execute(_ context.Context, t *Turn) Outcome {
	if _, fault := t.SetTimer(time.Hour, "wake up"); fault != nil {
		return Outcome{Failure: &Failure{Cause: "test", Message: fault.Error()}}
	}
	return Outcome{}
}

// Tasks that only wait for a timer are not kept in memory, and count as before.
func TestWaitingTasksAreParked(t *testing.T) {
	const n = 2000
	store := &instanceStore{known: map[InstanceKey]bool{}, tasks: map[TaskKey]Snapshot{}}
	def := manyDefinitions(1)
	r, err := New(t.Context(), store, sleeper{}, NoForwarder{}, noTools{}, def, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := r.Run(ctx, time.Second); err != nil {
			t.Error(err)
		}
	})
	defer run.Wait()
	defer cancel()
	alice := Principal{Tenant: "tenant0", Role: mail.RoleUser, ID: "alice"}
	post := func(task string) {
		if _, err := r.Submit(ctx, Post{
			Principal: alice, Task: task, Swarm: "hive", Door: "test", Type: mail.Request, Subject: "s", Body: "b",
		}); err != nil {
			t.Fatal(err)
		}
	}
	parked := func(want int) {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			is, live := len(r.parked), len(r.tasks)
			r.mu.Unlock()
			if is == want && live == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d tasks are parked and %d in memory, want %d parked", is, live, want)
			}
		}
	}
	before := inUse()
	for i := range n {
		post(fmt.Sprint("task", i))
	}
	parked(n)
	post("task0") // is loaded, has a turn and is let go of again
	parked(n)
	st, err := r.Status(ctx, alice.Instance("hive"))
	if err != nil || !st.Running {
		t.Errorf("the status with tasks that wait is %+v, %v", st, err)
	}
	r.mu.Lock()
	if tl := r.tenantLoads["tenant0"]; tl.load != (load{n, n + 1}) {
		t.Errorf("the ledger has %+v", *tl)
	}
	r.mu.Unlock()
	all := inUse()
	store.tasks = map[TaskKey]Snapshot{}
	each := (inUse() - before) / n
	t.Logf("%d bytes for a task that waits, beside %d that this test's store keeps of it", each, (all-before)/n-each)
	if each > 1000 {
		t.Errorf("a task that waits takes %d bytes", each)
	}
}
