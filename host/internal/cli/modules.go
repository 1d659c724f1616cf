package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skep/host"
	"skep/host/internal/config"
	"skep/host/internal/guard"
	"skep/host/internal/sandbox"
	"skep/host/internal/wasmbin"
)

// moduleFaults are what is wrong with the modules of a file.
type moduleFaults struct {
	// refused are modules that cannot be used, grants requests that the file
	// does not meet.
	refused, grants config.Faults
	// modules counts those that are good, each once.
	modules int
}

// checkModules loads every module as a host would and compares what it asks
// for with what the file grants.
func (a *app) checkModules(ctx context.Context, cfg *config.Config) (found moduleFaults, err error) {
	engine, err := sandbox.New(ctx, sandbox.Options{
		CacheDir: a.cacheDir(), Caps: host.Caps(cfg.Limits.Module), Child: host.Compiler(a.compiler()),
	})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	found.grants = append(host.GrantFaults(cfg), host.ModelFaults(cfg)...)
	found.grants = append(found.grants, host.FileFaults(cfg, a.dataDir(), a.cacheDir())...)
	found.grants = append(found.grants, host.FormFaults(cfg)...)
	found.grants = append(found.grants, host.ToolFaults(cfg)...)
	good := map[string]bool{}
	for _, agent := range cfg.Agents {
		if agent.Source.Kind == config.SourceExec {
			digest, err := host.CheckProgram(agent) // it is not started for a look
			if err != nil {
				found.refused = append(found.refused, refusedModule(cfg, "agents", agent.Name, agent.Source, err))
				continue
			}
			good[digest] = true
			continue
		}
		m, err := loadModule(ctx, engine, agent.Source, agent.SHA256, host.Caps(cfg.Limits.Module))
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		var fault *sandbox.CompileError
		if errors.As(err, &fault) {
			return found, err
		}
		if err != nil {
			found.refused = append(found.refused, refusedModule(cfg, "agents", agent.Name, agent.Source, err))
			continue
		}
		good[m.Digest()] = true
		found.grants = append(found.grants, host.ModuleFaults(cfg, agent, m)...)
	}
	if err := found.checkActions(ctx, engine, cfg, good); err != nil {
		return found, err
	}
	var weak *guard.Error
	if err := guard.Dir(a.dataDir()); errors.As(err, &weak) {
		found.refused = append(found.refused, cfg.Fault(fmt.Sprintf("the data directory is refused: %v", err)))
	}
	found.modules = len(good)
	return found, nil
}

// checkActions looks at the modules of actions, too.
func (found *moduleFaults) checkActions(ctx context.Context, engine *sandbox.Engine, cfg *config.Config, good map[string]bool) error {
	for _, action := range cfg.Actions {
		switch action.Source.Kind {
		case config.SourceHuman, config.SourceBuiltin, config.SourceMCP:
			continue
		case config.SourceExec:
			digest, err := host.CheckProgram(config.Agent{Source: action.Source, SHA256: action.SHA256})
			if err != nil {
				found.refused = append(found.refused, refusedModule(cfg, "actions", action.Name, action.Source, err))
				continue
			}
			good[digest] = true
			continue
		}
		m, err := loadModule(ctx, engine, action.Source, action.SHA256, host.Caps(cfg.Limits.Module))
		var fault *sandbox.CompileError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &fault):
			return err
		case err != nil:
			found.refused = append(found.refused, refusedModule(cfg, "actions", action.Name, action.Source, err))
			continue
		}
		good[m.Digest()] = true
		found.grants = append(found.grants, host.ActionFaults(cfg, action, m)...)
	}
	return nil
}

// loadModule loads the module of an agent or action.
func loadModule(ctx context.Context, engine *sandbox.Engine, source config.Source, pinned string, caps wasmbin.Caps) (*sandbox.Module, error) {
	wasm, err := sandbox.ReadModule(sourceText(source), source.Path, caps)
	if err != nil {
		return nil, err
	}
	return engine.Load(ctx, sandbox.Source{
		Name: sourceText(source), Wasm: wasm, SHA256: pinned,
		Trusted: source.Kind == config.SourceBundled,
	})
}

// refusedModule places a refusal at the line that decides.
func refusedModule(cfg *config.Config, section, name string, source config.Source, err error) config.Fault {
	var refusal *sandbox.LoadError
	var weak *guard.Error
	if errors.As(err, &weak) {
		return cfg.Fault(fmt.Sprintf("the module %s is refused: %v", sourceText(source), err), section, name, "source")
	}
	if !errors.As(err, &refusal) {
		return cfg.Fault(fmt.Sprintf("the module %s cannot be read: %v", sourceText(source), err), section, name, "source")
	}
	text := "the " + refusal.Error()
	key := "source"
	switch {
	case refusal.Key == "sha256":
		key = "sha256"
	case refusal.Key != "" && !strings.Contains(text, "[limits.module]"):
		text += "; the limit is " + refusal.Key
	}
	return cfg.Fault(text, section, name, key)
}

// inOrder sorts faults by their place in the file.
func inOrder(faults config.Faults) config.Faults {
	slices.SortStableFunc(faults, func(a, b config.Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if faults == nil {
		return config.Faults{}
	}
	return faults
}

// place gives the position of a fault.
func place(f config.Fault) string { return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Col) }
