package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/schema"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/fileaction"
)

// fileFaults lists what is wrong with the roots of builtin:fs actions and with the paths
// that programs may read. Neither may hold, or lie in, one of the host's private
// directories.
func fileFaults(cfg *config.Config, private ...string) config.Faults {
	_, faults := openRoots(cfg, fileaction.NewLocks())
	faults = append(faults, readableFaults(cfg, private)...)
	for _, a := range fileActions(cfg) {
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

// readableFaults lists the readable paths that reach the operator's file or the host's
// private directories, which hold keys of callers and all tenants' data.
func readableFaults(cfg *config.Config, private []string) (faults config.Faults) {
	file := config.Whole(filepath.Join(cfg.Dir, filepath.Base(cfg.File)))
	check := func(section, name string, readable []string) {
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
		check("agents", a.Name, a.Readable)
	}
	for _, a := range cfg.Actions {
		check("actions", a.Name, a.Readable)
	}
	return faults
}

// fileActions are the actions of builtin:fs.
func fileActions(cfg *config.Config) (some []config.Action) {
	for _, a := range cfg.Actions {
		if a.Source.Kind == config.SourceBuiltin {
			some = append(some, a)
		}
	}
	return some
}

// openRoots opens the roots of builtin:fs actions, by action.
func openRoots(cfg *config.Config, k *fileaction.Locks) (map[string]*fileaction.Directory, config.Faults) {
	all := map[string]*fileaction.Directory{}
	var faults config.Faults
	for _, a := range fileActions(cfg) {
		f := a.Files
		j, err := k.OpenDirectory(f.Root, fileaction.Options{
			Table: actionGrantee(a).table(), Shared: f.Shared, Write: f.Write, MaxFile: int64(f.MaxFile), MaxTotal: int64(f.MaxTotal),
		})
		if err != nil {
			faults = append(faults, cfg.Fault(fmt.Sprintf("the root of action %q cannot be opened: %v", a.Name, err), "actions", a.Name, "root"))
			continue
		}
		all[a.Name] = j
	}
	return all, faults
}

// bindFileAction makes an action of builtin:fs. The root is nil for an action of an older
// definition that the file has no more. A file action can be repeated, so a call in doubt
// is, unless the file forbids it.
func bindFileAction(a config.Action, j *fileaction.Directory) *capability.Action {
	bound := &capability.Action{Name: a.Name, Timeout: a.Timeout, Check: checkOf(a.Name, fileTool(a).Parameters)}
	bound.Allow.RetryInDoubt = a.Allow.RetryInDoubt
	bound.Host = func(ctx context.Context, c capability.HostCall) (json.RawMessage, *abi.Error) {
		if j == nil || a.Files.Root == "" {
			return nil, abi.Errorf(abi.CodeUnsupported, abi.OpAction, "root", "the operator's file does not have the action %q any more", a.Name)
		}
		return j.Do(ctx, fileaction.Call{Action: a.Files.Does, Tenant: c.Tenant, Key: c.Key, Retry: c.Retry, Args: c.Args})
	}
	return bound
}

// fileTool is the tool that callers of a builtin:fs action see.
func fileTool(a config.Action) abi.Tool {
	text, params := fileaction.Describe(a.Files.Does)
	declared := config.EffectRead
	if a.Files.Writes() {
		declared = config.EffectWrite
	}
	tool := abi.Tool{Name: a.Name, Description: a.Description, Parameters: parametersOf(a, abi.ActionDescriptor{Parameters: params}), Effect: effectOf(a, declared)}
	if tool.Description == "" {
		tool.Description = text
	}
	return tool
}

// EraseFiles removes a tenant's files from the roots of a file while no host runs, and
// reports whether there were any.
func EraseFiles(roots []config.Files, tenant string) (had bool, err error) {
	var errs []error
	keeper := fileaction.NewLocks()
	for _, f := range roots {
		was := false
		j, err := keeper.OpenDirectory(f.Root, fileaction.Options{Shared: f.Shared})
		if err == nil {
			was, err = j.EraseTenant(tenant)
		}
		if had = had || was; err != nil {
			errs = append(errs, fmt.Errorf("the tenant's files in %s are not erased: %w", f.Root, err))
		}
	}
	return had, errors.Join(errs...)
}

// eraseFiles removes a tenant's files from open roots, and reports whether there were any.
func eraseFiles(files map[string]*fileaction.Directory, tenant string) (had bool, err error) {
	var errs []error
	for name, j := range files {
		was, err := j.EraseTenant(tenant)
		if had = had || was; err != nil {
			errs = append(errs, fmt.Errorf("the files of action %q are not erased: %w", name, err))
		}
	}
	return had, errors.Join(errs...)
}
