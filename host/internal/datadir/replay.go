package datadir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/wasm"
)

// ErrNotFound: there is no such task, turn or call.
var ErrNotFound = errors.New("not found")

// ReplayOptions are what to replay.
type ReplayOptions struct {
	// Config names the modules; it is required. [config.LoadModules] reads all
	// that a replay needs.
	Config *config.Config
	// DataDir and CacheDir are as in [skep/host.Options].
	DataDir, CacheDir string
	// Compiler is as in [skep/host.Options].
	Compiler []string
	// Task is the task's id. Tenant and Instance, as in "user:alice", choose
	// where several have one of that id; an instance may name its tenant itself,
	// as in "user:acme/alice".
	Task, Tenant, Instance string
	// Turn is the number of one turn, 0 for all of them.
	Turn int64
	// At is the path of the call to stop at, empty for none. It needs a Turn.
	At string
	// Each, where it is set, is told of every call of the turns, in their order.
	Each func(turn int64, agent string, call ReplayedCall)
}

// ReplayedCall is what an agent asked in one call, and what it was told.
type ReplayedCall = capability.ReplayedCall

// ReplayedTurn is one turn that was run again.
type ReplayedTurn struct {
	Turn  int64
	Agent string
	// Skipped is why the turn was not run again, empty for one that was.
	Skipped string
	capability.ReplayResult
}

// Replay runs recorded turns of a task again, on their records alone, and says
// of each whether it did the same. It only reads the data directory, which a
// host may be using. What is not there is [ErrNotFound].
func Replay(ctx context.Context, opt ReplayOptions) (turns []ReplayedTurn, err error) {
	if opt.DataDir == "" {
		opt.DataDir = filepath.Join(opt.Config.Dir, ".skep")
	}
	if opt.CacheDir == "" {
		opt.CacheDir = filepath.Join(opt.DataDir, "cache")
	}
	store, err := OpenReader(ctx, opt.DataDir, opt.Config.Store)
	if err != nil {
		return nil, StoreFault(opt.Config, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r := replayer{opt: opt, store: store, modules: map[string]*wasm.Module{}}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.engine.Close(context.WithoutCancel(ctx))) }()
	return r.run(ctx)
}

// replayer runs the turns of one task again.
type replayer struct {
	opt     ReplayOptions
	store   *sqlite.Reader
	task    swarm.Task
	engine  *wasm.Engine
	modules map[string]*wasm.Module
}

// open finds the task and makes the engine.
func (r *replayer) open(ctx context.Context) error {
	key, err := r.key(ctx)
	if err != nil {
		return err
	}
	snap, err := r.store.Load(ctx, key)
	if err != nil {
		return err
	}
	r.task = snap.Task
	r.engine, err = wasm.New(ctx, wasm.Options{
		CacheDir: r.opt.CacheDir, Caps: r.opt.Config.Limits.Module, Secret: r.store.Secret(), Child: definition.Compiler(r.opt.Compiler),
	})
	return err
}

// maxSame bounds the search for tasks of one id.
const maxSame = 1000

func (r *replayer) key(ctx context.Context) (swarm.TaskKey, error) {
	keys, err := r.store.Find(ctx, r.opt.Task, maxSame)
	if err != nil {
		return swarm.TaskKey{}, err
	}
	found := slices.DeleteFunc(keys, func(k swarm.TaskKey) bool { return !r.opt.chooses(k) })
	switch len(found) {
	case 0:
		return swarm.TaskKey{}, fmt.Errorf("%w: there is no task %q in %s", ErrNotFound, r.opt.Task, placeOf(r.opt.DataDir, r.opt.Config.Store))
	case 1:
		return found[0], nil
	}
	return swarm.TaskKey{}, fmt.Errorf("%d instances have a task %q, %s: name one with --tenant and --instance",
		len(found), r.opt.Task, listed(found))
}

// chooses reports whether a task is of the tenant and instance that are asked for.
func (o ReplayOptions) chooses(k swarm.TaskKey) bool {
	if o.Tenant != "" && o.Tenant != k.Tenant {
		return false
	}
	role, id, _ := strings.Cut(k.Instance, ":")
	return o.Instance == "" || o.Instance == k.Instance || o.Instance == role+":"+k.Tenant+"/"+id
}

// maxListed is how many tasks of one id are named.
const maxListed = 5

func listed(keys []swarm.TaskKey) string {
	var names []string
	for _, k := range keys[:min(len(keys), maxListed)] {
		names = append(names, fmt.Sprintf("%s of tenant %s", k.Instance, k.Tenant))
	}
	if len(keys) > maxListed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func (r *replayer) run(ctx context.Context) (out []ReplayedTurn, err error) {
	if r.opt.Turn > 0 {
		one, err := r.turn(ctx, r.opt.Turn)
		return []ReplayedTurn{one}, err
	}
	for after := int64(0); ; {
		page, err := r.store.Records(ctx, r.task.Key, after, 100)
		if err != nil {
			return out, err
		}
		for _, rec := range page {
			one, err := r.turn(ctx, rec.N)
			if err != nil {
				return out, err
			}
			out, after = append(out, one), rec.N
		}
		if len(page) > 0 {
			continue
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("%w: task %q has no recorded turn", ErrNotFound, r.opt.Task)
		}
		return out, nil
	}
}

func (r *replayer) turn(ctx context.Context, n int64) (ReplayedTurn, error) {
	rec, err := r.store.Record(ctx, r.task.Key, n)
	if errors.Is(err, swarm.ErrNotFound) {
		return ReplayedTurn{}, fmt.Errorf("%w: there is no record of turn %d of task %q", ErrNotFound, n, r.opt.Task)
	}
	if err != nil {
		return ReplayedTurn{}, err
	}
	out := ReplayedTurn{Turn: n, Agent: rec.Header.Agent}
	m, err := r.module(ctx, rec.Header.Module)
	if process := new(processTurnError); errors.As(err, &process) {
		out.Skipped = process.Error()
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("turn %d of agent %q: %w", n, rec.Header.Agent, err)
	}
	look := capability.ReplayOptions{StopAt: r.opt.At, Modules: r}
	if r.opt.Each != nil {
		look.OnCall = func(call ReplayedCall) { r.opt.Each(n, rec.Header.Agent, call) }
	}
	out.ReplayResult, err = capability.Replay(ctx, m, wasm.Recipe(), rec, swarm.DeriveSeed(r.store.Secret(), r.task, n), look)
	if err == nil && r.opt.At != "" && out.StoppedAt == nil && out.Difference == "" {
		err = fmt.Errorf("%w: turn %d has no call %q; it made %d", ErrNotFound, n, r.opt.At, out.Ops)
	}
	return out, err
}

// module loads a module by its digest: the copy in the data directory, or a
// source of the configuration that still has it.
func (r *replayer) module(ctx context.Context, digest string) (*wasm.Module, error) {
	if m := r.modules[digest]; m != nil {
		return m, nil
	}
	src, err := r.source(ctx, digest)
	if err != nil {
		return nil, err
	}
	m, err := r.engine.Load(ctx, src)
	if err != nil {
		return nil, err
	}
	r.modules[digest] = m
	return m, nil
}

// Module loads what an action was recorded on.
func (r *replayer) Module(ctx context.Context, digest string) (capability.Module, error) {
	m, err := r.module(ctx, digest)
	if err != nil {
		return nil, err // not m: its type would make it look like a module
	}
	return m, nil
}

// processTurnError is why a turn of a process is not run again.
type processTurnError struct{ program string }

func (e *processTurnError) Error() string {
	return "it ran in a process (exec:" + e.program + "), which does not repeat itself"
}

func (r *replayer) source(ctx context.Context, digest string) (wasm.Source, error) {
	kept := definition.DataModules(r.opt.DataDir)
	var rows definition.ModuleRows
	where := string(kept)
	if m := r.store.ServerModules(); m != nil {
		rows, where = m, where+" nor on the server"
	}
	data, err := definition.ReadCopy(ctx, kept, rows, digest, r.opt.Config.Limits.Module)
	if err == nil {
		return wasm.Source{Name: digest, Wasm: data, SHA256: digest}, nil
	}
	if ctx.Err() != nil {
		return wasm.Source{}, err
	}
	for _, a := range definition.Executables(r.opt.Config.Composition()) {
		if a.Source.Kind == config.SourceExec {
			if program, err := definition.ProgramDigest(a.Source); err == nil && program == digest {
				return wasm.Source{}, &processTurnError{a.Source.Ref}
			}
			continue
		}
		data, err := definition.ReadModule(a.Name, a.Source, r.opt.Config.Limits.Module)
		if err != nil {
			continue // another may be the one
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) == digest {
			return wasm.Source{Name: a.Name, Wasm: data, SHA256: digest, Trusted: a.Source.Kind == config.SourceBundled}, nil
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return wasm.Source{}, err
	}
	return wasm.Source{}, fmt.Errorf("its module %s is neither in %s nor what an agent of the configuration has now", digest, where)
}
