package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"skep/host/internal/definition/config"
	"skep/host/internal/definition/plan"
	"skep/host/internal/swarm"
)

// rereadFile is the file as it is now, compared with what is in force.
type rereadFile struct {
	cfg *config.Config
	// digests are the digests of its modules, by the keys of [Loader.Load].
	digests map[string]string
	// parts are [plan.Parts].
	parts   map[string]string
	changes []plan.Change
}

// Plan compares the file as it is now with what is in force.
func (l *Library) Plan(context.Context) ([]plan.Change, error) {
	next, err := l.reread()
	return next.changes, err
}

func (l *Library) reread() (next rereadFile, err error) {
	if l.opt.Reread == nil {
		return next, conflict("this host was started without a file that could be read again")
	}
	if next.cfg, err = l.opt.Reread(); err != nil {
		return next, conflict("the file is at fault; nothing has changed: %v", err)
	}
	next.digests = map[string]string{}
	shown := next.cfg.Composition()
	for i := range shown.Agents {
		a := &shown.Agents[i]
		if a.SHA256, err = l.opt.Loader.digestOf("agent", *a); err != nil {
			return next, conflict("agent %q; nothing has changed: %v", a.Name, err)
		}
		next.digests[a.Name] = a.SHA256
	}
	for i := range shown.Actions {
		a := &shown.Actions[i]
		if !a.Source.Kind.Coded() {
			continue
		}
		if a.SHA256, err = l.opt.Loader.digestOf("action", asAgent(*a)); err != nil {
			return next, conflict("action %q; nothing has changed: %v", a.Name, err)
		}
		next.digests[moduleKey(a.Name)] = a.SHA256
	}
	next.parts = plan.Parts(next.cfg.With(shown))
	next.changes = plan.Compare(l.running(), next.cfg.With(shown), includes)
	return next, nil
}

// running is the configuration in force, with the digests of its modules.
func (l *Library) running() *config.Config {
	s := l.current()
	return s.file.Config.With(s.own.composition)
}

// conflict refuses a reload.
func conflict(format string, args ...any) error {
	return &swarm.Refusal{Kind: swarm.ErrConflict, Text: fmt.Sprintf(format, args...)}
}

// loadedFile is a file whose modules are loaded.
type loadedFile struct {
	rereadFile
	modules map[string]Module
}

// Reload puts the file in force as it is now, all of it or nothing. Modules are loaded
// before anything changes, and without holding up other calls. Where hosts share a store, all of
// them put their files in force, or none does.
func (l *Library) Reload(ctx context.Context) ([]plan.Change, error) {
	if l.opt.Agree == nil {
		if err := l.reloading.Lock(ctx); err != nil {
			return nil, err
		}
	} else if !l.reloading.TryLock() {
		return nil, conflict("nothing has changed: a reload is under way: reload again when it is done")
	}
	defer l.reloading.Unlock()
	defer l.protectModules(nil)
	next, err := l.load(ctx, nil)
	if err == nil && l.opt.Agree != nil {
		err = l.agree(ctx, next)
	}
	if err != nil {
		return nil, err
	}
	return next.changes, l.putInForce(ctx, next)
}

// load reads the file and loads its modules. Nothing is loaded unless check returns nil for its parts.
func (l *Library) load(ctx context.Context, check func(parts map[string]string) error) (next loadedFile, err error) {
	if next.rereadFile, err = l.reread(); err != nil {
		return next, err
	}
	if check != nil {
		if err := check(next.parts); err != nil {
			return next, err
		}
	}
	var fixed []string
	for _, c := range next.changes {
		if c.Restart {
			fixed = append(fixed, c.Kind+" "+c.Name)
		}
	}
	if len(fixed) > 0 {
		return next, conflict("nothing has changed, because this takes a restart: %s", strings.Join(fixed, ", "))
	}
	l.protectModules(next.digests)
	next.modules, err = l.opt.Loader.Load(ctx, next.cfg)
	if err == nil {
		err = next.compareDigests(next.modules)
	}
	if err != nil {
		return next, asUnchanged(err)
	}
	return next, nil
}

// asUnchanged is the error of a reload that has changed nothing. A store that is away is no fault of the file: the same
// reload may succeed later.
func asUnchanged(err error) error {
	if errors.Is(err, swarm.ErrUnavailable) {
		return fmt.Errorf("nothing has changed: %w", err)
	}
	return conflict("nothing has changed: %v", err)
}

// putInForce adopts a file with all that goes by it.
func (l *Library) putInForce(ctx context.Context, next loadedFile) error {
	if err := l.adopt(ctx, next.cfg, next.modules); err != nil {
		return err
	}
	if l.opt.Adopted != nil {
		l.opt.Adopted(next.cfg)
	}
	l.log.Info("took the file over", "config", fmt.Sprintf("sha256:%s", l.Config().Digest()), "changes", len(next.changes))
	return nil
}

// compareDigests refuses modules other than those that were read first: a sweep may close
// a module that is neither in force nor protected.
func (r rereadFile) compareDigests(modules map[string]Module) error {
	for key, m := range modules {
		if m.Digest() != r.digests[key] {
			return fmt.Errorf("the module of %s was written to while it was loaded; reload again", describeKey(key))
		}
	}
	return nil
}

// protectModules keeps sweeps from closing the modules of a file that is not in force
// yet; nil protects none.
func (l *Library) protectModules(digests map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loading = map[string]bool{}
	for _, digest := range digests {
		l.loading[digest] = true
	}
}

// adopt puts a file in force, with what tenants have loaded until now.
func (l *Library) adopt(ctx context.Context, cfg *config.Config, modules map[string]Module) error {
	s, err := l.replaceState(ctx, cfg, modules)
	if err != nil {
		return errors.Join(err, l.tools.discard(s.servers))
	}
	return l.tools.activate(s.servers)
}

// replaceState is adopt without closing sessions with MCP servers, so that l.change is
// not held while they end.
func (l *Library) replaceState(ctx context.Context, cfg *config.Config, modules map[string]Module) (state, error) {
	if err := l.change.Lock(ctx); err != nil {
		return state{}, err
	}
	defer l.change.Unlock()
	s, err := l.nextState(ctx, cfg, modules)
	if err == nil {
		err = l.swapState(s)
	}
	if err == nil {
		l.providers.forgetSilence()
	}
	return s, err
}

// nextState makes the state of a configuration that is to replace the one in force. The caller holds l.change.
func (l *Library) nextState(ctx context.Context, cfg *config.Config, modules map[string]Module) (state, error) {
	s, err := l.newState(ctx, cfg, modules)
	for tenant := range s.damaged {
		if !l.damaged[tenant] { // what it runs on could not be narrowed
			err = errors.Join(err, fmt.Errorf("the loaded definition of tenant %q cannot be read", tenant))
		}
	}
	if err == nil {
		maps.Copy(s.damaged, l.damaged) // until the next start
	}
	return s, err
}

// swapState puts a state in force. The definitions of unfinished tasks stay, within what
// the new file grants. The caller holds l.change.
func (l *Library) swapState(s state) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for digest, r := range l.bound {
		if s.bound[digest] == nil {
			s.bound[digest] = s.narrow(*r)
		}
	}
	narrowed := make([]swarm.Definition, 0, len(s.bound))
	for _, r := range s.bound {
		narrowed = append(narrowed, r.def)
	}
	before := l.state
	l.state = s
	l.exec.Bind(l.bindings())
	err := l.swarm.ReplaceDefinitions(l.all(), narrowed...)
	if err != nil {
		l.state = before
		l.exec.Bind(l.bindings())
	}
	return err
}
