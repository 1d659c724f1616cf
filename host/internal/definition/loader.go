package definition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"skep/host/internal/turn"
	"slices"

	"skep/host/internal/definition/config"
	"skep/host/internal/turn/process"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
)

// Compiler is the child process that a command line starts, nil for an empty one.
func Compiler(command []string) *wasm.ChildCompiler {
	if len(command) == 0 {
		return nil
	}
	return &wasm.ChildCompiler{Command: command}
}

// TurnLimits are the limits of a turn that a configuration sets.
func TurnLimits(l config.AgentLimits) turn.Limits {
	return turn.Limits{
		Memory: int64(l.Memory), Stack: int64(l.Stack), Fuel: uint64(l.Fuel), CPU: l.CPU,
		Output: int64(l.Output), HostCalls: int64(l.HostCalls), HostBytes: int64(l.HostBytes), Grace: l.Grace,
	}
}

// LoaderOptions of [NewLoader].
type LoaderOptions struct {
	// DataDir holds the copies of modules, CacheDir compiled modules.
	DataDir, CacheDir string
	// Rows are the copies of modules for hosts that share the store, nil for a store in a file.
	Rows ModuleRows
	// Secret seals the entries of the compile cache.
	Secret []byte
	// Subprocess begins the command line of the process between the host and a
	// subprocess; without it exec: sources are refused.
	Subprocess []string
	// Compiler begins the command line of the child that compiles modules which do not
	// come with the host; without it they are compiled in this process.
	Compiler []string
	Logger   *slog.Logger
}

// Loader compiles modules, starts programs and keeps a copy of each module. Close it.
type Loader struct {
	opt     LoaderOptions
	engine  *wasm.Engine
	modules *moduleStore
	log     *slog.Logger
}

// NewLoader makes the loader for a configuration's limits. The caller holds the lock of
// the data directory.
func NewLoader(ctx context.Context, cfg *config.Config, opt LoaderOptions) (*Loader, error) {
	caps := cfg.Limits.Module
	engine, err := wasm.New(ctx, wasm.Options{
		CacheDir: opt.CacheDir, Caps: caps, Secret: opt.Secret, Logger: opt.Logger, Child: Compiler(opt.Compiler),
	})
	if err != nil {
		return nil, err
	}
	p := newPrograms(process.Options{Command: opt.Subprocess, Logger: opt.Logger, IdleTimeout: cfg.Limits.ProcessIdle}, cfg.Limits.ProcessCgroup)
	modules, err := newModuleStore(opt.DataDir, engine, caps, p)
	if err != nil {
		return nil, errors.Join(err, engine.Close(context.WithoutCancel(ctx)))
	}
	modules.rows, modules.log = opt.Rows, opt.Logger
	return &Loader{opt: opt, engine: engine, modules: modules, log: opt.Logger}, nil
}

// Close ends all programs and frees all modules. No turn runs any more.
func (l *Loader) Close() error {
	return errors.Join(l.modules.programs.close(), l.engine.Close(context.Background()))
}

// Load loads the modules of a configuration, by the names of its agents and the
// [moduleKey] of its actions, and keeps a copy of each, also for hosts that share the store. A module that is refused is a *turn.LoadError; faults of
// the file are [config.Faults].
func (l *Loader) Load(ctx context.Context, cfg *config.Config) (map[string]Module, error) {
	if faults := Faults(cfg, l.opt.DataDir, l.opt.CacheDir); len(faults) > 0 {
		return nil, faults // before any program is started
	}
	var faults config.Faults
	modules := make(map[string]Module, len(cfg.Agents))
	for _, a := range cfg.Agents {
		m, err := l.loadOne(ctx, "agent", a)
		if err != nil {
			return nil, err
		}
		modules[a.Name] = m
		faults = append(faults, AgentFaults(cfg, a, m)...)
	}
	for _, a := range codedActions(cfg.Actions) {
		m, err := l.loadOne(ctx, "action", asAgent(a))
		if err != nil {
			return nil, err
		}
		modules[moduleKey(a.Name)] = m
		faults = append(faults, ActionFaults(cfg, a, m)...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if err := l.modules.keepRows(ctx, digestsOf(modules)); err != nil {
		return nil, err
	}
	for _, m := range cfg.Models {
		l.log.Info("model", "model", m.Name, "way", m.Answering())
	}
	return modules, nil
}

// digestsOf lists the digests of modules, each once.
func digestsOf(modules map[string]Module) []string {
	digests := map[string]bool{}
	for _, m := range modules {
		digests[m.Digest()] = true
	}
	return slices.Sorted(maps.Keys(digests))
}

// loadOne loads the module of an agent or action and keeps a copy of it, or starts its
// program. kind is "agent" or "action", for error texts and the log.
func (l *Loader) loadOne(ctx context.Context, kind string, a config.Agent) (Module, error) {
	if a.Source.Kind == config.SourceExec {
		return l.loadProgram(ctx, kind, a)
	}
	data, err := ReadModule(a.Name, a.Source, l.modules.caps)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind, a.Name, err)
	}
	m, err := l.engine.Load(ctx, wasm.Source{
		Name: a.Name, Wasm: data, SHA256: a.SHA256, Trusted: a.Source.Kind == config.SourceBundled,
	})
	if err != nil {
		return nil, err
	}
	if err := l.modules.save(m.Digest(), data); err != nil {
		return nil, err
	}
	l.modules.setSource(m.Digest(), func() ([]byte, error) { return ReadModule(a.Name, a.Source, l.modules.caps) })
	l.log.Info("loaded", kind, a.Name, "source", string(a.Source.Kind)+":"+a.Source.Ref, "digest", m.Digest())
	return m, nil
}

// ReadModule reads the module of a source, as [wasm.ReadModule] does.
func ReadModule(name string, s config.Source, caps binary.Caps) ([]byte, error) {
	if s.Bundle != nil {
		return s.Bundle.Read(s.Ref)
	}
	return wasm.ReadModule(name, s.Path, caps)
}

// digestOf is the digest of the module or program that is in a source file now. kind is as
// in [Loader.loadOne].
func (l *Loader) digestOf(kind string, a config.Agent) (string, error) {
	if a.Source.Kind == config.SourceExec {
		return CheckProgram(kind, a)
	}
	data, err := ReadModule(a.Name, a.Source, l.modules.caps)
	if err != nil {
		return "", err
	}
	return digestOf(data), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
