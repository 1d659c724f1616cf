package host

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

	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/sandbox"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// ErrNotFound says that there is no such task, turn or call.
var ErrNotFound = errors.New("not found")

// ReplayOptions say what to replay.
type ReplayOptions struct {
	// Config names the modules; it is required. [config.LoadModules] reads all
	// that a replay needs.
	Config *config.Config
	// DataDir and CacheDir are as in [Options].
	DataDir, CacheDir string
	// Compiler is as in [Options].
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
type ReplayedCall = capability.Seen

// ReplayedTurn is one turn that was run again.
type ReplayedTurn struct {
	Turn  int64
	Agent string
	capability.Replayed
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
	store, err := openReader(ctx, opt.DataDir, opt.Config.Store.Keyring)
	if err != nil {
		return nil, keyFault(opt.Config, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r := replayer{opt: opt, store: store, modules: map[string]*sandbox.Module{}}
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
	engine  *sandbox.Engine
	modules map[string]*sandbox.Module
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
	r.engine, err = sandbox.New(ctx, sandbox.Options{
		CacheDir: r.opt.CacheDir, Caps: Caps(r.opt.Config.Limits.Module), Secret: r.store.Secret(), Child: Compiler(r.opt.Compiler),
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
		return swarm.TaskKey{}, fmt.Errorf("%w: there is no task %q in %s", ErrNotFound, r.opt.Task, r.opt.DataDir)
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
	if err != nil {
		return out, fmt.Errorf("turn %d of agent %q: %w", n, rec.Header.Agent, err)
	}
	look := capability.Look{At: r.opt.At, Modules: r}
	if r.opt.Each != nil {
		look.Each = func(call ReplayedCall) { r.opt.Each(n, rec.Header.Agent, call) }
	}
	out.Replayed, err = capability.Replay(ctx, m, rec, swarm.Seed(r.store.Secret(), r.task, n), look)
	if err == nil && r.opt.At != "" && out.Seen == nil && out.Difference == "" {
		err = fmt.Errorf("%w: turn %d has no call %q; it made %d", ErrNotFound, n, r.opt.At, out.Ops)
	}
	return out, err
}

// module loads a module by its digest: the copy in the data directory, or a
// source of the configuration that still has it.
func (r *replayer) module(ctx context.Context, digest string) (*sandbox.Module, error) {
	if m := r.modules[digest]; m != nil {
		return m, nil
	}
	src, err := r.source(digest)
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

func (r *replayer) source(digest string) (sandbox.Source, error) {
	kept := modulesDir(r.opt.DataDir)
	wasm, err := readModule(kept, digest, Caps(r.opt.Config.Limits.Module))
	if err == nil {
		return sandbox.Source{Name: digest, Wasm: wasm, SHA256: digest}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return sandbox.Source{}, err
	}
	for _, a := range running(r.opt.Config.Composition()) {
		if a.Source.Kind == config.SourceExec {
			if program, err := CheckProgram(a); err == nil && program == digest {
				return sandbox.Source{}, fmt.Errorf("the turn ran in a subprocess (exec:%s), which does not repeat itself", a.Source.Ref)
			}
			continue
		}
		wasm, err := sandbox.ReadModule(a.Name, a.Source.Path, Caps(r.opt.Config.Limits.Module))
		if err != nil {
			continue // another may be the one
		}
		if sum := sha256.Sum256(wasm); hex.EncodeToString(sum[:]) == digest {
			return sandbox.Source{Name: a.Name, Wasm: wasm, SHA256: digest, Trusted: a.Source.Kind == config.SourceBundled}, nil
		}
	}
	return sandbox.Source{}, fmt.Errorf("its module %s is neither in %s nor what an agent of the configuration has now", digest, kept)
}
