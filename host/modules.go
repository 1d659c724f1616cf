package host

import (
	"context"
	"fmt"

	"skep/host/internal/config"
	"skep/host/internal/sandbox"
	"skep/host/internal/wasmbin"
)

// Compiler is the child that a command line starts, nil for none.
func Compiler(command []string) *sandbox.Child {
	if len(command) == 0 {
		return nil
	}
	return &sandbox.Child{Command: command}
}

// Caps are the module caps a configuration sets.
func Caps(m config.ModuleLimits) wasmbin.Caps {
	return wasmbin.Caps{
		Size: int64(m.Size), Functions: int64(m.Functions), Body: int64(m.Body), Locals: int64(m.Locals),
		Nesting: int64(m.Nesting), BrTable: int64(m.BrTable), Types: int64(m.Types), Imports: int64(m.Imports),
		Exports: int64(m.Exports), Globals: int64(m.Globals), DataSegments: int64(m.DataSegments),
		ElementSegments: int64(m.ElementSegments), Tables: int64(m.Tables), TableElements: int64(m.TableElements),
		CompileWork: int64(m.CompileWork),
	}
}

// TurnLimits are the limits of a turn that a configuration sets.
func TurnLimits(l config.AgentLimits) sandbox.Limits {
	return sandbox.Limits{
		Memory: int64(l.Memory), Stack: int64(l.Stack), Fuel: uint64(l.Fuel), CPU: l.CPU,
		Output: int64(l.Output), HostCalls: int64(l.HostCalls), HostBytes: int64(l.HostBytes), Grace: l.Grace,
	}
}

// openEngine makes what compiles modules, and where their copies are.
func (h *Host) openEngine(ctx context.Context) error {
	caps := Caps(h.opt.Config.Limits.Module)
	secret, err := h.store.Secret(ctx)
	if err != nil {
		return err
	}
	h.engine, err = sandbox.New(ctx, sandbox.Options{
		CacheDir: h.opt.CacheDir, Caps: caps, Secret: secret, Logger: h.log,
		Child: Compiler(h.opt.Compiler),
	})
	if err != nil {
		return err
	}
	h.kept, err = newModuleStore(h.opt.DataDir, h.engine, caps)
	return err
}

// loadModules loads the modules of a configuration's agents, by the agents'
// names.
func (h *Host) loadModules(ctx context.Context, cfg *config.Config) (map[string]*sandbox.Module, error) {
	modules := make(map[string]*sandbox.Module, len(cfg.Agents))
	faults := GrantFaults(cfg)
	for _, a := range cfg.Agents {
		m, err := h.loadModule(ctx, a)
		if err != nil {
			return nil, err
		}
		modules[a.Name] = m
		faults = append(faults, ModuleFaults(cfg, a, m)...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return modules, nil
}

// loadModule loads an agent's module and keeps a copy of it.
func (h *Host) loadModule(ctx context.Context, a config.Agent) (*sandbox.Module, error) {
	wasm, err := sandbox.ReadModule(a.Name, a.Source.Path, Caps(h.opt.Config.Limits.Module))
	if err != nil {
		return nil, fmt.Errorf("agent %q: %w", a.Name, err)
	}
	m, err := h.engine.Load(ctx, sandbox.Source{
		Name: a.Name, Wasm: wasm, SHA256: a.SHA256, Trusted: a.Source.Kind == config.SourceBundled,
	})
	if err != nil {
		return nil, err
	}
	if err := h.kept.keep(m.Digest(), wasm); err != nil {
		return nil, err
	}
	h.log.Info("loaded", "agent", a.Name, "source", string(a.Source.Kind)+":"+a.Source.Ref, "digest", m.Digest())
	return m, nil
}

// ModuleFaults lists why an agent cannot run on a module as the file has it.
func ModuleFaults(cfg *config.Config, a config.Agent, m *sandbox.Module) config.Faults {
	faults := MissingGrants(cfg, a, m.Descriptor())
	if need := config.Size(m.MinMemory()); need > a.Limits.Memory {
		faults = append(faults, cfg.Fault(fmt.Sprintf(
			"the module starts with %v of memory, the agent may have %v; raise [agents.%s] limits.memory", need, a.Limits.Memory, a.Name),
			"agents", a.Name, "limits", "memory"))
	}
	return faults
}
