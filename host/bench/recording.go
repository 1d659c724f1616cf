package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	hostdef "skep/host/internal/definition"
	"skep/host/internal/guests"
	"skep/host/internal/schema"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/wasm"
	"skep/spec/mail"
)

// recording holds the steps of tasks as the runtime handed them to the store.
type recording struct{ tasks []recorded }

type recorded struct {
	accept swarm.Mutation
	sub    swarm.Submission
	commit []swarm.Mutation
}

// recordedTasks is how many tasks are recorded; replays rename them.
const recordedTasks = 200

// recorder keeps what passes on its way to the store.
type recorder struct {
	*sqlite.Store
	mu    sync.Mutex
	tasks map[swarm.TaskKey]*recorded
}

func (r *recorder) Accept(ctx context.Context, step swarm.Mutation, sub swarm.Submission) (swarm.Submission, error) {
	r.mu.Lock()
	r.tasks[step.Task.Key] = &recorded{accept: step, sub: sub}
	r.mu.Unlock()
	return r.Store.Accept(ctx, step, sub)
}

func (r *recorder) Commit(ctx context.Context, step swarm.Mutation) error {
	r.mu.Lock()
	rec := r.tasks[step.Task.Key]
	rec.commit = append(rec.commit, step)
	r.mu.Unlock()
	return r.Store.Commit(ctx, step)
}

// openSealed opens a store as a host does.
func openSealed(ctx context.Context, dir string) (*sqlite.Store, error) {
	return sqlite.Open(ctx, dir, sqlite.Options{Keyring: &keyring.Options{}})
}

// record runs tasks through the real runtime and sandbox.
func record(ctx context.Context) (*recording, error) {
	dir, err := os.MkdirTemp("", "skep-tape")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	store, err := openSealed(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	rec := &recorder{Store: store, tasks: map[swarm.TaskKey]*recorded{}}
	if err := runTasks(ctx, rec, recordedTasks); err != nil {
		return nil, err
	}
	t := &recording{}
	for _, r := range rec.tasks {
		t.tasks = append(t.tasks, *r)
	}
	return t, nil
}

// runTasks runs n tasks, one after the other, in the swarm that a host makes of
// [benchSwarm].
func runTasks(ctx context.Context, store swarm.Store, n int) error {
	engine, err := wasm.New(ctx, wasm.Options{CacheDir: filepath.Join(guests.Root(), "bin", "cache")})
	if err != nil {
		return err
	}
	defer engine.Close(ctx)
	wasmBytes, err := readGuest("bin/plugins/script.wasm")
	if err != nil {
		return err
	}
	module, err := engine.Load(ctx, wasm.Source{Name: "boss", Wasm: wasmBytes})
	if err != nil {
		return err
	}
	set, err := schema.Load()
	if err != nil {
		return err
	}
	def, binding, err := benchDefinition(module)
	if err != nil {
		return err
	}
	agent := capability.Agent{Definition: def.Digest, Name: def.Entrypoint}
	rt, err := swarm.New(ctx, store, capability.NewExecutor(map[capability.Agent]capability.Binding{agent: binding}, nil, wasm.Recipe()),
		swarm.NoForwarder{}, mailTools{set}, []swarm.Definition{def}, swarm.Options{})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- rt.Run(run, time.Second) }()
	defer func() { cancel(); <-done }()
	for range n {
		if err := oneTask(ctx, rt); err != nil {
			return err
		}
	}
	return nil
}

// benchDefinition is what a host makes of [benchSwarm]; a test compares what both
// store.
func benchDefinition(module *wasm.Module) (def swarm.Definition, binding capability.Binding, err error) {
	cfg, err := parse(benchSwarm, "")
	if err != nil {
		return def, binding, err
	}
	a := cfg.Agents[0]
	def = swarm.Definition{
		Tenant: swarm.DefaultTenant, Name: cfg.Swarm.Name, Entrypoint: cfg.Swarm.Entrypoint,
		Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(benchSwarm))),
		Agents: []swarm.Agent{{
			Name: a.Name, Entrypoint: a.EnableEntrypoint, CanComplete: a.CanCompleteTasks, Params: a.Params,
			Limits: swarm.TurnLimits{
				Wall: a.Limits.Turn, Fuel: uint64(a.Limits.Fuel), Output: int64(a.Limits.Output), HostCalls: int64(a.Limits.HostCalls),
			},
		}},
		Limits: swarm.Limits{TaskMessages: cfg.Limits.TaskMessages, TaskTimeout: cfg.Limits.TaskTimeout},
	}
	return def, capability.Binding{Module: module, Limits: hostdef.TurnLimits(a.Limits)}, nil
}

func oneTask(ctx context.Context, rt *swarm.Runtime) error {
	digest := sha256.Sum256([]byte("hello"))
	receipt, err := rt.Submit(ctx, swarm.Post{
		Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "bench"},
		Swarm:     "hive", Door: "rest", Type: mail.Request, Subject: "q", Body: "hello",
		Digest: digest[:],
	})
	if err != nil {
		return err
	}
	a, err := rt.Wait(ctx, receipt)
	if err == nil && a.State != swarm.StateCompleted {
		err = fmt.Errorf("the task is %s: %s", a.State, a.Body)
	}
	return err
}

// replay applies the steps to an empty store, each writer its own tasks in
// order, and counts tasks.
func (t *recording) replay(ctx context.Context, writers int, span time.Duration) (int, time.Duration, error) {
	dir, err := os.MkdirTemp("", "skep-replay")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	store, err := openSealed(ctx, dir)
	if err != nil {
		return 0, 0, err
	}
	defer store.Close()
	if err := t.tasks[0].apply(ctx, store, 0); err != nil { // makes the tenant's key
		return 0, 0, err
	}
	var n atomic.Int64
	return parallel(writers, span, func(int) error {
		i := n.Add(1)
		return t.tasks[int(i)%len(t.tasks)].apply(ctx, store, i)
	})
}

// apply writes one task under a name that no other has.
func (r recorded) apply(ctx context.Context, store swarm.TaskLog, i int64) error {
	name := fmt.Sprintf("replay-%d", i)
	accept, sub := r.accept, r.sub
	accept.Task.Key.Task, sub.Task, sub.Key = name, name, name
	if _, err := store.Accept(ctx, accept, sub); err != nil {
		return err
	}
	for _, step := range r.commit {
		step.Task.Key.Task = name
		answers := make([]swarm.SubmissionAnswer, len(step.Answers))
		for j, a := range step.Answers {
			answers[j] = swarm.SubmissionAnswer{Door: a.Door, Key: name, Cursor: a.Cursor}
		}
		step.Answers = answers
		if err := store.Commit(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

type mailTools struct{ set *schema.Set }

func (b mailTools) Tools() (tools []abi.Tool) {
	for _, t := range b.set.Tools() {
		tools = append(tools, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return tools
}

func (b mailTools) ToolArgs(tool string, args []byte) error { return b.set.ToolArgs(tool, args) }
