package host

import (
	"context"
	"fmt"
	"strings"

	"skep/abi"
	"skep/host/internal/config"
	"skep/host/internal/sandbox"
	"skep/host/internal/subprocess"
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
	p := newPrograms(subprocess.Options{Command: h.opt.Subprocess, Logger: h.log, Idle: h.opt.Config.Limits.ProcessIdle})
	if h.kept, err = newModuleStore(h.opt.DataDir, h.engine, caps, p); err != nil {
		return err
	}
	return nil
}

// loadModules loads the modules of a configuration's agents, by the agents'
// names.
func (h *Host) loadModules(ctx context.Context, cfg *config.Config) (map[string]Module, error) {
	modules := make(map[string]Module, len(cfg.Agents))
	faults := append(GrantFaults(cfg), ModelFaults(cfg)...)
	faults = append(faults, FileFaults(cfg, h.opt.DataDir, h.opt.CacheDir)...)
	faults = append(faults, FormFaults(cfg)...)
	faults = append(faults, ToolFaults(cfg)...)
	if faults = append(faults, programFaults(cfg)...); len(faults) > 0 {
		return nil, faults // before any program is started
	}
	for _, a := range cfg.Agents {
		m, err := h.loadModule(ctx, "agent", a)
		if err != nil {
			return nil, err
		}
		modules[a.Name] = m
		faults = append(faults, ModuleFaults(cfg, a, m)...)
	}
	wrong, err := h.loadActions(ctx, cfg, modules)
	if err != nil {
		return nil, err
	}
	if faults = append(faults, wrong...); len(faults) > 0 {
		return nil, faults
	}
	for _, m := range cfg.Models {
		h.log.Info("model", "model", m.Name, "way", m.Answering())
	}
	return modules, nil
}

// loadModule loads the module of an agent or action and keeps a copy of it, or starts
// its program. kind is which of the two, for people.
func (h *Host) loadModule(ctx context.Context, kind string, a config.Agent) (Module, error) {
	if a.Source.Kind == config.SourceExec {
		return h.loadProgram(ctx, kind, a)
	}
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
	h.log.Info("loaded", kind, a.Name, "source", string(a.Source.Kind)+":"+a.Source.Ref, "digest", m.Digest())
	return m, nil
}

// ModuleFaults lists why an agent cannot run on a module as the file has it.
func ModuleFaults(cfg *config.Config, a config.Agent, m Module) config.Faults {
	faults := append(MissingGrants(cfg, a, m.Descriptor()), memoryFaults(cfg, agentHolder(a), m)...)
	faults = append(faults, playFaults(cfg, a, m.Descriptor())...)
	return append(faults, paramFaults(cfg, a, m.Descriptor())...)
}

// playFaults refuses an agent on a bundled module that has actions alone. One of
// somebody else's may play agents that it does not list.
func playFaults(cfg *config.Config, a config.Agent, d *abi.Descriptor) config.Faults {
	if a.Source.Kind != config.SourceBundled || len(d.Agents) > 0 || len(d.Actions) == 0 {
		return nil
	}
	return config.Faults{cfg.Fault(fmt.Sprintf("the module %s %s has actions and no agent; use it as in [actions.%s] source = %q",
		d.Name, d.Version, d.Actions[0].Name, string(config.SourceBundled)+":"+a.Source.Ref), "agents", a.Name, "source")}
}

func memoryFaults(cfg *config.Config, h holder, m Module) config.Faults {
	need := config.Size(m.MinMemory())
	if need <= h.limits.Memory {
		return nil
	}
	return config.Faults{cfg.Fault(fmt.Sprintf(
		"the module starts with %v of memory, the %s may have %v; raise %s limits.memory", need, strings.TrimSuffix(h.section, "s"), h.limits.Memory, h.table()),
		h.section, h.name, "limits", "memory")}
}
