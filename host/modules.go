package host

import (
	"context"
	"fmt"

	"skep/abi"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/egress"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
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

func (h *Host) loadModules(ctx context.Context) (err error) {
	cfg := h.opt.Config
	secret, err := h.store.Secret(ctx)
	if err != nil {
		return err
	}
	h.engine, err = sandbox.New(ctx, sandbox.Options{
		CacheDir: h.opt.CacheDir, Caps: Caps(cfg.Limits.Module), Secret: secret, Logger: h.log,
		Child: Compiler(h.opt.Compiler),
	})
	if err != nil {
		return err
	}
	if h.kept, err = newModuleStore(h.opt.DataDir, h.engine, Caps(cfg.Limits.Module)); err != nil {
		return err
	}
	faults := GrantFaults(cfg)
	for _, a := range cfg.Agents {
		m, err := h.loadModule(ctx, a)
		if err != nil {
			return err
		}
		faults = append(faults, ModuleFaults(cfg, a, m)...)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
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
	h.modules[a.Name] = m
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

// define translates the configuration into the runtime's words.
func (h *Host) define() ([]swarm.Definition, map[capability.Agent]capability.Binding) {
	cfg := h.opt.Config
	def := swarm.Definition{
		Name: cfg.Swarm.Name, Version: cfg.Swarm.Version,
		Description: cfg.Swarm.Description, Keywords: cfg.Swarm.Keywords, Public: cfg.Swarm.Public,
		Entrypoint: cfg.Swarm.Entrypoint, Preempt: cfg.Swarm.InterruptMode == config.InterruptPreempt,
		Limits: swarm.Limits{
			TaskMessages: cfg.Limits.TaskMessages, TaskTimeout: cfg.Limits.TaskTimeout,
			Queue: cfg.Limits.Queue, Instances: cfg.Limits.Instances,
		},
	}
	def.BreakpointTools = cfg.Swarm.BreakpointTools
	for _, a := range cfg.Actions {
		if a.Source.Kind == config.SourceHuman {
			def.Human = append(def.Human, abi.Tool{Name: a.Name, Description: a.Description, Parameters: a.Parameters})
		}
	}
	web := egress.New(egress.Options{})
	bindings := map[string]capability.Binding{}
	for _, a := range cfg.Agents {
		l := a.Limits
		def.Agents = append(def.Agents, swarm.Agent{
			Name: a.Name, Targets: a.CommTargets, Entrypoint: a.EnableEntrypoint,
			CanComplete: a.CanCompleteTasks, Interswarm: a.EnableInterswarm,
			Actions: a.Actions, Exclude: a.ExcludeTools, Params: a.Params,
			Limits: swarm.TurnLimits{
				Wall: l.Turn, Fuel: uint64(l.Fuel), Output: int64(l.Output), HostCalls: int64(l.HostCalls),
			},
		})
		bindings[a.Name] = capability.Binding{
			Module: h.modules[a.Name],
			Limits: TurnLimits(l),
			Allow:  allow(cfg, a),
			Web:    web,
		}
	}
	return spread(cfg, def, bindings)
}
