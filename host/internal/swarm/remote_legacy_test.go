package swarm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/spec/mail"
)

// legacy is a store with running tasks of an earlier host, in each of which a
// message waits. The loading of some waits until it is let go.
type legacy struct {
	*instanceStore
	keys    []TaskKey
	held    map[TaskKey]chan struct{}
	loading chan TaskKey
}

func newLegacy(keys ...TaskKey) *legacy {
	s := &legacy{
		instanceStore: &instanceStore{known: map[InstanceKey]bool{}, tasks: map[TaskKey]Snapshot{}},
		keys:          keys, held: map[TaskKey]chan struct{}{}, loading: make(chan TaskKey, 1000),
	}
	for _, key := range keys {
		s.known[key.InstanceKey] = true
		m := newMessage(mail.Request, messageParts{
			task: key.Task, swarm: key.Swarm, id: newID(), payloadID: newID(), at: time.Now(),
			sender: mail.Address{Type: mail.User, Name: "u"}, recipients: []mail.Address{{Type: mail.Agent, Name: "boss"}},
		})
		s.tasks[key] = Snapshot{
			Task: Task{Key: key, Entrypoint: "boss", State: StateRunning, Rows: 1, Cursor: 1, Nonce: []byte("n")},
			Rows: []Row{{N: 1, Agent: "boss", Tier: mail.Tier(m), Message: m}},
		}
	}
	return s
}

func (s *legacy) hold(key TaskKey) (release func()) {
	ch := make(chan struct{})
	s.held[key] = ch
	return sync.OnceFunc(func() { close(ch) })
}

func (s *legacy) RunningTasks(context.Context) (found []RunningTask, err error) {
	for _, key := range s.keys {
		found = append(found, RunningTask{key, 1})
	}
	return found, nil
}

func (s *legacy) Load(ctx context.Context, key TaskKey) (Snapshot, error) {
	s.loading <- key
	if ch := s.held[key]; ch != nil {
		select {
		case <-ch:
		case <-ctx.Done():
			return Snapshot{}, ctx.Err()
		}
	}
	return s.instanceStore.Load(ctx, key)
}

func (s *legacy) Record(context.Context, TaskKey, int64) (Record, error) {
	return Record{}, ErrNotFound
}

func (s *legacy) state(key TaskKey) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[key].Task.State
}

func taskOf(tenant, user, task string) TaskKey {
	return TaskKey{InstanceKey{tenant, "hive", "user:" + user}, task}
}

// begin runs a runtime on a store until the test ends, or stop is called.
func begin(t *testing.T, store Store, opt Options) (r *Runtime, stop func() error) {
	t.Helper()
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, manyDefinitions(3), opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, time.Second) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return r, stop
}

func postTo(r *Runtime, key TaskKey) (*Receipt, error) {
	return r.Submit(context.Background(), Post{
		Principal: Principal{Tenant: key.Tenant, Role: mail.RoleUser, ID: strings.TrimPrefix(key.Instance, "user:")},
		Task:      key.Task, Swarm: "hive", Door: "test", Type: mail.Request, Subject: "s", Body: "b",
	})
}

func mustAnswer(t *testing.T, r *Runtime, key TaskKey) {
	t.Helper()
	receipt, err := postTo(r, key)
	if err == nil {
		_, err = r.Wait(t.Context(), receipt)
	}
	if err != nil {
		t.Fatalf("a post to %s: %v", key.Task, err)
	}
}

// wantRest waits until nothing goes on any more, and wants nothing to be left of
// it in memory.
func wantRest(t *testing.T, r *Runtime) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		left := fmt.Sprintf("%d tasks, %d parked, %d ledgers", len(r.tasks), len(r.parked), len(r.tenantLoads))
		r.mu.Unlock()
		if left == "0 tasks, 0 parked, 0 ledgers" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("in memory are still ", left)
		}
	}
}
