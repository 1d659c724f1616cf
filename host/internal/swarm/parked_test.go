package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// shelf is a store that keeps which instances there are, and nothing else.
type shelf struct {
	Store
	mu    sync.Mutex
	known map[InstanceKey]bool
}

func (s *shelf) Secret(context.Context) ([]byte, error) { return make([]byte, 32), nil }

func (s *shelf) Accept(_ context.Context, step Step, sub Submission) (Submission, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[step.Task.Key.InstanceKey] = true
	return sub, nil
}

func (s *shelf) Tasks(_ context.Context, key InstanceKey, _ time.Time, _ int) ([]Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] {
		return make([]Task, 1), nil
	}
	return nil, nil
}

func (s *shelf) Instances(_ context.Context, tenant, swarm string) (found []InstanceKey, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.known {
		if key.Tenant == tenant && key.Swarm == swarm {
			found = append(found, key)
		}
	}
	return found, nil
}

func (s *shelf) Footprint(context.Context, string) (Footprint, error) { return Footprint{}, nil }
func (s *shelf) Commit(context.Context, Step) error                   { return nil }
func (s *shelf) Claim(context.Context) ([]TaskKey, error)             { return nil, nil }
func (s *shelf) Load(context.Context, TaskKey) (Snapshot, error)      { return Snapshot{}, ErrNotFound }
func (s *shelf) Purge(context.Context, time.Time) (int64, error)      { return 0, nil }
func (s *shelf) Prune(context.Context, PruneRule) (Pruned, error)     { return Pruned{}, nil }

// completer is an agent that completes at once.
type completer struct{}

func (completer) Execute(_ context.Context, t *Turn) Outcome {
	args, _ := json.Marshal(map[string]string{"finish_message": "done"})
	if _, fault := t.Mail(abi.MailRequest{Tool: mail.ToolTaskComplete, Args: args}); fault != nil {
		return Outcome{Failure: &Failure{Cause: "test", Message: fault.Error()}}
	}
	return Outcome{}
}

type toolbook struct{}

func (toolbook) Tools() []abi.Tool {
	return []abi.Tool{{Name: mail.ToolTaskComplete, Parameters: json.RawMessage(`{}`)}}
}
func (toolbook) ToolArgs(string, []byte) error { return nil }

func crowd(n int) []Definition {
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
// many there were, and come back as if they had never been away.
func TestParkedTakeLittleMemory(t *testing.T) {
	const n = 10_000
	store := &shelf{known: make(map[InstanceKey]bool, 2*n)}
	before := inUse()
	defs := crowd(n)
	r, err := New(t.Context(), store, completer{}, Closed{}, toolbook{}, defs, Options{})
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
		post(i, "bob")
	}
	perParked := (inUse() - before) / n
	t.Logf("%d bytes for a tenant as such, %d more for one of which two instances are parked", perTenant, perParked)
	if perTenant > 1000 || perParked > 500 {
		t.Errorf("a tenant takes %d bytes, and %d more when it is parked", perTenant, perParked)
	}
	for i := range 5 {
		post(i, "alice")
		if st, err := r.Status(ctx, Principal{defs[i].Tenant, mail.RoleUser, "alice"}.Instance("hive")); err != nil || st.Users != 2 || !st.Ready || st.Running {
			t.Errorf("status of tenant %d is %+v, %v", i, st, err)
		}
	}
	if len(r.tasks) > 0 || len(r.ledgers) > 0 || len(r.instances) > maxIdle {
		t.Errorf("in memory are %d tasks, %d ledgers and %d instances", len(r.tasks), len(r.ledgers), len(r.instances))
	}
	cancel()
	run.Wait()
	runtime.KeepAlive(store)
}

// An instance that was let go of is counted once when it comes back.
func TestParkedAreCountedOnce(t *testing.T) {
	store := &shelf{known: map[InstanceKey]bool{}}
	r, err := New(t.Context(), store, completer{}, Closed{}, toolbook{}, crowd(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	def := r.defs[swarmKey{"tenant0", "hive"}]
	visit := func(id string) error {
		key := InstanceKey{"tenant0", "hive", "user:" + id}
		if err := r.room(t.Context(), newLive(TaskKey{key, "t"}, def)); err != nil {
			return err
		}
		r.mu.Lock()
		r.carry(key, load{})
		r.mu.Unlock()
		store.known[key] = true
		r.leave(key)
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
	r.census[swarmKey{"tenant0", "hive"}].at = time.Time{}
	if err := visit("one more"); err != nil {
		t.Error("a place that is free again:", err)
	}
}
