package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"skep/abi"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/jail"
	"skep/host/internal/schema"
)

// FileFaults lists why a file's actions of builtin:fs cannot be done, and what no
// program may read. What the host keeps for itself in private must not lie in their
// roots or in what is readable, nor around them.
func FileFaults(cfg *config.Config, private ...string) config.Faults {
	_, faults := jails(cfg, jail.NewKeeper())
	faults = append(faults, readableFaults(cfg, private)...)
	for _, a := range filing(cfg) {
		for _, dir := range private {
			dir = config.Whole(dir)
			if config.Within(dir, a.Files.Root) || config.Within(a.Files.Root, dir) {
				faults = append(faults, cfg.Fault(fmt.Sprintf("actions.%s.root and %s, which is the host's own, lie one within the other; name another directory", a.Name, dir), "actions", a.Name, "root"))
			}
		}
		if _, err := schema.CompileParams(a.Name, fileTool(a).Parameters); err != nil {
			faults = append(faults, cfg.Fault(fmt.Sprintf("the parameters of action %q cannot be checked: %v", a.Name, err), "actions", a.Name, "parameters"))
		}
	}
	return faults
}

// readableFaults lists what programs may read of the operator's file and of what the
// host keeps for itself: keys of callers, all tenants' data.
func readableFaults(cfg *config.Config, private []string) (faults config.Faults) {
	file := config.Whole(filepath.Join(cfg.Dir, filepath.Base(cfg.File)))
	look := func(section, name string, readable []string) {
		for _, path := range readable {
			full := config.Whole(path)
			for _, dir := range private {
				if dir = config.Whole(dir); config.Within(dir, full) || config.Within(full, dir) {
					faults = append(faults, cfg.Fault(fmt.Sprintf("readable: %s and %s, which is the host's own, lie one within the other; name what the program needs", path, dir), section, name, "readable"))
				}
			}
			if config.Within(file, full) {
				faults = append(faults, cfg.Fault(fmt.Sprintf("readable: %s holds %s, which the program must not read; name what it needs", path, filepath.Base(file)), section, name, "readable"))
			}
		}
	}
	for _, a := range cfg.Agents {
		look("agents", a.Name, a.Readable)
	}
	for _, a := range cfg.Actions {
		look("actions", a.Name, a.Readable)
	}
	return faults
}

// filing are the actions of builtin:fs.
func filing(cfg *config.Config) (some []config.Action) {
	for _, a := range cfg.Actions {
		if a.Source.Kind == config.SourceBuiltin {
			some = append(some, a)
		}
	}
	return some
}

// jails opens the roots of a file, by the names of its actions.
func jails(cfg *config.Config, k *jail.Keeper) (map[string]*jail.Jail, config.Faults) {
	all := map[string]*jail.Jail{}
	var faults config.Faults
	for _, a := range filing(cfg) {
		f := a.Files
		j, err := k.Open(f.Root, jail.Options{
			Table: actionHolder(a).table(), Shared: f.Shared, Write: f.Write, MaxFile: int64(f.MaxFile), MaxTotal: int64(f.MaxTotal),
		})
		if err != nil {
			faults = append(faults, cfg.Fault(fmt.Sprintf("the root of action %q cannot be opened: %v", a.Name, err), "actions", a.Name, "root"))
			continue
		}
		all[a.Name] = j
	}
	return all, faults
}

// bindFiles makes an action of builtin:fs. It has no root when it is one of an older
// definition that the file does not have any more. What it does can be done again,
// so it is, unless the file forbids that.
func bindFiles(a config.Action, j *jail.Jail) *capability.Action {
	bound := &capability.Action{Name: a.Name, Timeout: a.Timeout, Check: checks(a.Name, fileTool(a).Parameters)}
	bound.Allow.RetryInDoubt = a.Allow.RetryInDoubt
	bound.Host = func(ctx context.Context, c capability.HostCall) (json.RawMessage, *abi.Error) {
		if j == nil || a.Files.Root == "" {
			return nil, abi.Errorf(abi.CodeUnsupported, abi.OpAction, "root", "the operator's file does not have the action %q any more", a.Name)
		}
		return j.Do(ctx, jail.Call{Does: a.Files.Does, Tenant: c.Tenant, Key: c.Key, Again: c.Again, Args: c.Args})
	}
	return bound
}

// fileTool is an action of builtin:fs as its callers are shown it.
func fileTool(a config.Action) abi.Tool {
	text, params := jail.Describe(a.Files.Does)
	tool := abi.Tool{Name: a.Name, Description: a.Description, Parameters: parametersOf(a, abi.ActionDescriptor{Parameters: params})}
	if tool.Description == "" {
		tool.Description = text
	}
	return tool
}

// EraseFiles removes what a tenant has in the roots of a file, while no host runs, and
// reports whether there was anything.
func EraseFiles(roots []config.Files, tenant string) (had bool, err error) {
	var errs []error
	keeper := jail.NewKeeper()
	for _, f := range roots {
		was := false
		j, err := keeper.Open(f.Root, jail.Options{Shared: f.Shared})
		if err == nil {
			was, err = j.Erase(tenant)
		}
		if had = had || was; err != nil {
			errs = append(errs, fmt.Errorf("the tenant's files in %s are not erased: %w", f.Root, err))
		}
	}
	return had, errors.Join(errs...)
}

// eraseFiles removes what a tenant has in the roots of a file, and reports whether
// there was anything.
func eraseFiles(files map[string]*jail.Jail, tenant string) (had bool, err error) {
	var errs []error
	for name, j := range files {
		was, err := j.Erase(tenant)
		if had = had || was; err != nil {
			errs = append(errs, fmt.Errorf("the files of action %q are not erased: %w", name, err))
		}
	}
	return had, errors.Join(errs...)
}
