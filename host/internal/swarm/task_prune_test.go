package swarm_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/schema"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

func TestPrune(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.ask("hello", task("old"))
	snap := h.record("old")
	later := time.Now().Add(time.Hour)
	eventually(t, "the task is forgotten", func() bool {
		p, err := h.rt.Prune(t.Context(), time.Time{}, later)
		if err != nil {
			t.Fatal(err)
		}
		return p.Tasks > 0
	})
	if _, err := h.rt.Task(t.Context(), key("old")); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if p, err := h.rt.Prune(t.Context(), time.Time{}, snap.Task.Updated); p.Tasks > 0 || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if a := h.ask("again", task("old")); a.Body != "boss got [q] again" {
		t.Errorf("%+v", a)
	}
	if n := h.record("old").Task.Rows; n != 1 {
		t.Errorf("the new task has %d rows", n)
	}
}

// A repeat of a post whose task was pruned neither runs again nor reads another task's
// answer.
func TestRepeatAfterPrune(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	post := swarm.Post{Principal: alice(), Swarm: "hive", Door: "test", Type: "request", Subject: "q", Body: "hello", Task: "old", Key: "k", Digest: []byte("d")}
	repeat := func() (swarm.Answer, error) {
		receipt, err := h.rt.Submit(t.Context(), post)
		if err != nil {
			return swarm.Answer{}, err
		}
		return h.rt.Wait(t.Context(), receipt)
	}
	first, err := repeat()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := repeat(); err != nil || again != first {
		t.Fatalf("%+v, %v; the first was %+v", again, err, first)
	}
	eventually(t, "the task is pruned", func() bool {
		p, err := h.rt.Prune(t.Context(), time.Time{}, time.Now().Add(time.Hour))
		return err == nil && p.Tasks > 0
	})
	if a, err := repeat(); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("after the pruning: %+v, %v", a, err)
	}
	h.ask("something else", task("old"))
	if a, err := repeat(); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("with a new task of the same name: %+v, %v", a, err)
	}
}

// A task that has ended stays while a turn of it winds down: memory and store have the same.
func TestPruneLeavesTasksInMemory(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	began, gate := make(chan struct{}, 1), make(chan struct{})
	h.agents.by["boss"] = func(context.Context, *swarm.Turn) swarm.Outcome {
		began <- struct{}{}
		<-gate
		return swarm.Outcome{}
	}
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	h.mustPost("hello", task("old"))
	<-began
	if err := h.rt.CancelTask(t.Context(), key("old"), "alice"); err != nil {
		t.Fatal(err)
	}
	prune := func() int64 {
		p, err := h.rt.Prune(t.Context(), time.Time{}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return p.Tasks
	}
	if n := prune(); n != 0 || h.record("old").Task.State != swarm.StateCancelled {
		t.Errorf("%d tasks are pruned while a turn of one runs", n)
	}
	open()
	eventually(t, "the task is pruned", func() bool { return prune() == 1 })
}

// gate is a store that stops between choosing what goes and letting it go.
type gate struct {
	*sqlite.Store
	chosen  func()
	gone    func()
	pruning atomic.Bool
	early   atomic.Bool
}

func (g *gate) Prune(ctx context.Context, rule swarm.PruneRule) (swarm.Pruned, error) {
	g.pruning.Store(true)
	defer g.pruning.Store(false)
	keep := rule.Keep
	rule.Keep = func(key swarm.TaskKey) bool {
		kept := keep(key)
		g.chosen()
		return kept
	}
	gone := rule.Gone
	rule.Gone = func() {
		g.pruning.Store(false)
		gone()
		g.gone()
	}
	return g.Store.Prune(ctx, rule)
}

func (g *gate) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	if g.pruning.Load() {
		g.early.Store(true)
	}
	return g.Store.Load(ctx, key)
}

// A post to a task that has been chosen to go finds it gone, never half there.
func TestPostWhilePruning(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.ask("hello", task("old"))
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Store: h.store}
	rt, err := swarm.New(t.Context(), g, h.agents, swarm.NoForwarder{}, book{set}, []swarm.Definition{h.def}, h.opt)
	if err != nil {
		t.Fatal(err)
	}
	posted := make(chan error, 2)
	post := func(ctx context.Context, key string) {
		_, err := rt.Submit(ctx, swarm.Post{Principal: alice(), Swarm: "hive", Door: "test", Type: "request", Subject: "q", Body: "again", Task: "old", Key: key, Digest: []byte("d")})
		posted <- err
	}
	g.chosen = func() {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errGone)
		post(ctx, "") // with a key it would look for an earlier post first
		if err := <-posted; !errors.Is(err, errGone) {
			t.Errorf("a caller that left while its post waited got %v", err)
		}
		go post(t.Context(), "patient")
		time.Sleep(20 * time.Millisecond) // for the post to do it wrong, if it would
	}
	g.gone = func() {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errGone)
		_, err := rt.Submit(ctx, swarm.Post{Principal: alice(), Swarm: "hive", Door: "test", Type: "request", Subject: "q", Body: "x", Task: "old"})
		if err == errGone { // else it came as far as the store
			t.Error("a post waits for the round though its task is out of reach")
		}
	}
	p, err := rt.Prune(t.Context(), time.Time{}, time.Now().Add(time.Hour))
	if err != nil || p.Tasks != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := <-posted; err != nil || g.early.Load() {
		t.Errorf("post: %v; it loaded the task before it was gone: %v", err, g.early.Load())
	}
	snap, err := rt.Task(t.Context(), key("old"))
	if err != nil || snap.Task.Rows != 1 {
		t.Errorf("the new task has %d rows, %v", snap.Task.Rows, err)
	}
}

var errGone = errors.New("the caller is gone")
