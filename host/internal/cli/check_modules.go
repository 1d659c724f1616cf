package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
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
func (a *app) checkModules(ctx context.Context, cfg *config.Config, cacheDir string) (found moduleFaults, err error) {
	engine, err := wasm.New(ctx, wasm.Options{
		CacheDir: cacheDir, Caps: cfg.Limits.Module, Child: definition.Compiler(a.compiler()),
	})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	found.grants = definition.Faults(cfg, a.dataDir(), cacheDir)
	good := map[string]bool{}
	for _, agent := range cfg.Agents {
		if agent.Source.Kind == config.SourceExec {
			digest, err := definition.CheckProgram("agent", agent) // it is not started for a look
			if err != nil {
				found.refused = append(found.refused, refusedModule(cfg, "agents", agent.Name, agent.Source, err))
				continue
			}
			good[digest] = true
			continue
		}
		m, err := loadModule(ctx, engine, agent.Source, agent.SHA256, cfg.Limits.Module)
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		var fault *wasm.CompileError
		if errors.As(err, &fault) {
			return found, err
		}
		if err != nil {
			found.refused = append(found.refused, refusedModule(cfg, "agents", agent.Name, agent.Source, err))
			continue
		}
		good[m.Digest()] = true
		found.grants = append(found.grants, definition.AgentFaults(cfg, agent, m)...)
	}
	if err := found.checkActions(ctx, engine, cfg, good); err != nil {
		return found, err
	}
	var weak *pathcheck.Error
	if err := pathcheck.Dir(a.dataDir()); errors.As(err, &weak) {
		found.refused = append(found.refused, cfg.Fault(fmt.Sprintf("the data directory is refused: %v", err)))
	}
	found.modules = len(good)
	return found, nil
}

// checkActions looks at the modules of actions, too.
func (found *moduleFaults) checkActions(ctx context.Context, engine *wasm.Engine, cfg *config.Config, good map[string]bool) error {
	for _, action := range cfg.Actions {
		switch action.Source.Kind {
		case config.SourceHuman, config.SourceBuiltin, config.SourceMCP, config.SourceGateway:
			continue
		case config.SourceExec:
			digest, err := definition.CheckProgram("action", config.Agent{Name: action.Name, Source: action.Source, SHA256: action.SHA256, Readable: action.Readable})
			if err != nil {
				found.refused = append(found.refused, refusedModule(cfg, "actions", action.Name, action.Source, err))
				continue
			}
			good[digest] = true
			continue
		}
		m, err := loadModule(ctx, engine, action.Source, action.SHA256, cfg.Limits.Module)
		var fault *wasm.CompileError
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
		found.grants = append(found.grants, definition.ActionFaults(cfg, action, m)...)
	}
	return nil
}

// loadModule loads the module of an agent or action.
func loadModule(ctx context.Context, engine *wasm.Engine, source config.Source, pinned string, caps binary.Caps) (*wasm.Module, error) {
	wasmBytes, err := definition.ReadModule(sourceText(source), source, caps)
	if err != nil {
		return nil, err
	}
	return engine.Load(ctx, wasm.Source{
		Name: sourceText(source), Wasm: wasmBytes, SHA256: pinned,
		Trusted: source.Kind == config.SourceBundled,
	})
}

// refusedModule places a refusal at the line that decides.
func refusedModule(cfg *config.Config, section, name string, source config.Source, err error) config.Fault {
	var refusal *turn.LoadError
	var weak *pathcheck.Error
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

// sortFaults sorts faults by their place in the file.
func sortFaults(faults config.Faults) config.Faults {
	slices.SortStableFunc(faults, func(a, b config.Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if faults == nil {
		return config.Faults{}
	}
	return faults
}

// positionText renders the position of a fault.
func positionText(f config.Fault) string { return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Col) }
