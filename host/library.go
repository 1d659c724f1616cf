package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/sandbox"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// Definition returns what a task was begun with, within what the file grants
// today.
func (d *definitions) Definition(ctx context.Context, tenant, name, digest string) (*swarm.Definition, error) {
	d.change.Lock()
	defer d.change.Unlock()
	s := d.current()
	c := s.bound[digest]
	if c == nil {
		var err error
		if c, err = d.recall(ctx, s, tenant, name, digest); err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.bound[digest] = c
		d.exec.Bind(d.bindings())
		d.mu.Unlock()
	}
	def := c.of(tenant)
	return &def, nil
}

// recall makes a composition of what the store has kept of it.
func (d *definitions) recall(ctx context.Context, s state, tenant, name, digest string) (*composed, error) {
	kept, err := d.store.Definition(ctx, tenant, name, digest)
	if errors.Is(err, swarm.ErrNotFound) {
		kept, err = d.store.Definition(ctx, "", name, digest)
	}
	if err != nil {
		return nil, err
	}
	x, err := s.file.Config.RecallComposition(kept.Body)
	if err != nil {
		d.log.Error("a definition that is kept cannot be read", "definition", digest, "err", err)
		return nil, swarm.ErrNotFound
	}
	return s.narrow(composed{digest: digest, x: x, own: kept.Tenant == "", modules: d.modules(ctx, s, x)}), nil
}

// narrow composes with what today's file leaves of a composition.
func (s *state) narrow(c composed) *composed {
	return compose(s.file.Config, s.outside, c, s.file.Narrow(c.x, c.own))
}

// modules finds the modules of a composition: those of today, and copies of
// older ones.
func (d *definitions) modules(ctx context.Context, s state, x config.Composition) map[string]capability.Module {
	found := make(map[string]capability.Module, len(x.Agents))
	for _, a := range running(x) {
		if m := s.own.modules[a.SHA256]; m != nil {
			found[a.SHA256] = m
			continue
		}
		m, err := d.kept.load(ctx, a.SHA256)
		if err != nil {
			m = s.standIn(a, err)
			d.log.Error("a module that tasks were begun with cannot be loaded; their turns run on today's module of the agent, if there is one",
				"agent", a.Name, "digest", a.SHA256, "instead", m.Digest(), "err", err)
		}
		found[a.SHA256] = m
	}
	return found
}

// running are the agents of a composition and, as such, its actions with code.
func running(x config.Composition) []config.Agent {
	all := slices.Clone(x.Agents)
	for _, a := range coded(x.Actions) {
		one := asAgent(a)
		one.Name = moduleKey(a.Name)
		all = append(all, one)
	}
	return all
}

// standIn is today's module of an agent whose own is gone: what it was doing
// begins anew on it, as if the agent had been upgraded.
func (s *state) standIn(a config.Agent, err error) capability.Module {
	if m := s.own.modules[s.file.Modules[a.Name]]; m != nil {
		return m
	}
	return lost{a.SHA256, err}
}

// namedModules returns the digests of the modules that records of turns name, or
// definitions that are kept.
func (d *definitions) namedModules(ctx context.Context) (map[string]bool, error) {
	if err := d.sweep(ctx); err != nil {
		return nil, err
	}
	named, err := d.store.Modules(ctx)
	if err != nil {
		return nil, err
	}
	list, err := d.store.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	cfg := d.current().file.Config
	for _, k := range list {
		kept, err := d.store.Definition(ctx, k.Tenant, k.Swarm, k.Digest)
		if errors.Is(err, swarm.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		x, err := cfg.RecallComposition(kept.Body)
		if err != nil {
			return nil, err // rather too many modules than one too few
		}
		for _, a := range x.Agents {
			named[a.SHA256] = true
		}
		for _, a := range coded(x.Actions) {
			named[a.SHA256] = true
		}
	}
	return named, nil
}

// sweep forgets the definitions that are in force no more and that no unfinished
// task was begun with.
func (d *definitions) sweep(ctx context.Context) error {
	d.change.Lock()
	defer d.change.Unlock()
	return d.tidy(ctx)
}

// tidy is sweep for those who hold d.change.
func (d *definitions) tidy(ctx context.Context) error {
	used := d.swarm.InUse() // first: tasks go from memory to the store
	named, err := d.store.NamedDefinitions(ctx)
	if err != nil {
		return err
	}
	wanted := func(digest string) bool { return used[digest] || named[digest] || digest == d.own.digest }
	d.swarm.Forget(wanted)
	if err := d.kept.closeOthers(ctx, d.unbind(wanted)); err != nil {
		return err
	}
	return d.drop(ctx, func(k sqlite.Definition) bool { return !wanted(k.Digest) })
}

// unbind forgets the compositions that nobody wants, and returns the modules of the
// others and of those to come.
func (d *definitions) unbind(wanted func(digest string) bool) (modules map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.bound, func(digest string, _ *composed) bool { return !wanted(digest) })
	modules = map[string]bool{}
	maps.Copy(modules, d.coming)
	for _, c := range d.bound {
		for _, m := range c.modules {
			modules[m.Digest()] = true
		}
	}
	d.exec.Bind(d.bindings())
	return modules
}

// sweepEvery is how often definitions are looked through while there are some
// that are in force no more.
const sweepEvery = time.Minute

// run sweeps until ctx ends.
func (d *definitions) run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := d.sweep(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("cannot forget definitions that are in force no more", "err", err)
		}
	}
}

func (d *definitions) drop(ctx context.Context, old func(sqlite.Definition) bool) error {
	list, err := d.store.Definitions(ctx)
	for _, k := range list {
		if err == nil && old(k) {
			err = d.store.DropDefinition(ctx, k.Tenant, k.Swarm, k.Digest)
		}
	}
	return err
}

var _ capability.Module = (*sandbox.Module)(nil)
