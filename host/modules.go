package host

import (
	"context"
	"fmt"

	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/guard"
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
	var faults config.Faults
	for _, a := range cfg.Agents {
		wasm, err := guard.ReadFile(a.Source.Path)
		if err != nil {
			return fmt.Errorf("agent %q: %w", a.Name, err)
		}
		m, err := h.engine.Load(ctx, sandbox.Source{
			Name: a.Name, Wasm: wasm, SHA256: a.SHA256, Trusted: a.Source.Kind == config.SourceBundled,
		})
		if err != nil {
			return err
		}
		h.modules[a.Name] = m
		faults = append(faults, ModuleFaults(cfg, a, m)...)
		h.log.Info("loaded", "agent", a.Name, "source", string(a.Source.Kind)+":"+a.Source.Ref, "digest", m.Digest())
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
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
func (h *Host) define() (swarm.Definition, map[capability.Agent]capability.Binding) {
	cfg := h.opt.Config
	def := swarm.Definition{
		Tenant: swarm.DefaultTenant, Name: cfg.Swarm.Name, Version: cfg.Swarm.Version,
		Description: cfg.Swarm.Description, Keywords: cfg.Swarm.Keywords, Public: cfg.Swarm.Public,
		Entrypoint: cfg.Swarm.Entrypoint, Preempt: cfg.Swarm.InterruptMode == config.InterruptPreempt,
		Limits: swarm.Limits{
			TaskMessages: cfg.Limits.TaskMessages, TaskTimeout: cfg.Limits.TaskTimeout,
			Queue: cfg.Limits.Queue, Instances: cfg.Limits.Instances,
		},
	}
	bindings := map[capability.Agent]capability.Binding{}
	for _, a := range cfg.Agents {
		l := a.Limits
		def.Agents = append(def.Agents, swarm.Agent{
			Name: a.Name, Targets: a.CommTargets, Entrypoint: a.EnableEntrypoint,
			CanComplete: a.CanCompleteTasks, Interswarm: a.EnableInterswarm,
			Exclude: a.ExcludeTools, Params: a.Params,
			Limits: swarm.TurnLimits{
				Wall: l.Turn, Fuel: uint64(l.Fuel), Output: int64(l.Output), HostCalls: int64(l.HostCalls),
			},
		})
		bindings[capability.Agent{Tenant: def.Tenant, Swarm: def.Name, Name: a.Name}] = capability.Binding{
			Module: h.modules[a.Name],
			Limits: TurnLimits(l),
		}
	}
	return def, bindings
}
