package definition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/host/internal/turn/capability"
)

// Definition returns the definition that a task was begun with, within what the file
// grants today.
func (l *Library) Definition(ctx context.Context, tenant, name, digest string) (*swarm.Definition, error) {
	if err := l.change.Lock(ctx); err != nil {
		return nil, err
	}
	defer l.change.Unlock()
	s := l.current()
	r := s.bound[digest]
	if r == nil {
		var err error
		if r, err = l.recall(ctx, s, tenant, name, digest); err != nil {
			return nil, err
		}
		l.mu.Lock()
		l.bound[digest] = r
		l.exec.Bind(l.bindings())
		l.mu.Unlock()
	}
	def := r.forTenant(tenant)
	return &def, nil
}

// recall binds a stored composition.
func (l *Library) recall(ctx context.Context, s state, tenant, name, digest string) (*runnable, error) {
	stored, err := l.store.Definition(ctx, tenant, name, digest)
	if errors.Is(err, swarm.ErrNotFound) {
		stored, err = l.store.Definition(ctx, "", name, digest)
	}
	if err != nil {
		return nil, err
	}
	x, err := s.file.Config.RecallComposition(stored.Body)
	if err != nil {
		l.log.Error("a definition that is kept cannot be read", "definition", digest, "err", err)
		return nil, swarm.ErrNotFound
	}
	modules, err := l.findModules(ctx, s, x)
	if err != nil {
		return nil, err
	}
	return s.narrow(runnable{digest: digest, composition: x, operators: stored.Tenant == "", modules: modules}), nil
}

// findModules finds the modules of a composition: today's, and copies of older ones. A
// failure that may pass is an error: what is bound stays bound.
func (l *Library) findModules(ctx context.Context, s state, x config.Composition) (map[string]capability.Module, error) {
	found := make(map[string]capability.Module, len(x.Agents))
	for _, a := range Executables(x) {
		if m := s.own.modules[a.SHA256]; m != nil {
			found[a.SHA256] = m
			continue
		}
		m, err := l.opt.Loader.modules.load(ctx, a.SHA256)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil && !isGone(err) {
			return nil, fmt.Errorf("the module %s of %s: %w", a.SHA256, describeKey(a.Name), err)
		}
		if err != nil {
			m = s.substitute(a, err)
			l.log.Error("a module that tasks were begun with cannot be loaded; their turns run on today's module of the agent, if there is one",
				"agent", a.Name, "digest", a.SHA256, "instead", m.Digest(), "err", err)
		}
		found[a.SHA256] = m
	}
	return found, nil
}

// isGone reports whether a module is missing for good: there is no sound copy, or it is
// refused. A file that cannot be read now may be readable later.
func isGone(err error) bool {
	var refused *turn.LoadError
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) || errors.As(err, &refused) && refused.Step != turn.StepRead
}

// substitute is today's module of an agent whose own is missing: its unfinished turns
// begin anew, as after an upgrade of the agent.
func (s *state) substitute(a config.Agent, err error) capability.Module {
	if m := s.own.modules[s.file.Modules[a.Name]]; m != nil {
		return m
	}
	return missingModule{a.SHA256, err}
}

// moduleOf returns the digest of the module of an agent, empty if the definition cannot
// be run or the agent has none.
func (l *Library) moduleOf(definition, agent string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.bound[definition]; r != nil && r.agents[agent].Module != nil {
		return r.agents[agent].Module.Digest()
	}
	return ""
}
