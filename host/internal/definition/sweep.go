package definition

import (
	"context"
	"errors"
	"maps"
	"time"

	"skep/host/internal/swarm"
)

// sweepEvery is the time between sweeps.
const sweepEvery = time.Minute

// Run sweeps until ctx ends, and where other hosts share the store reads again what could not be read of theirs.
func (l *Library) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := l.sweep(ctx); err != nil && ctx.Err() == nil {
			l.log.Error("cannot forget definitions that are in force no more", "err", err)
		}
		if l.opt.Agree == nil {
			continue
		}
		if err := l.rereadUnused(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("cannot read the definitions that other hosts have loaded", "err", err)
		}
	}
}

// sweep drops the definitions that are not in force and that no unfinished task was begun
// with.
func (l *Library) sweep(ctx context.Context) error {
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	defer l.change.Unlock()
	return l.sweepLocked(ctx)
}

// sweepLocked is sweep for callers that hold l.change.
func (l *Library) sweepLocked(ctx context.Context) error {
	used := l.swarm.DefinitionsInUse() // first: tasks go from memory to the store
	named, err := l.store.NamedDefinitions(ctx)
	if err != nil {
		return err
	}
	wanted := func(digest string) bool { return used[digest] || named[digest] || digest == l.own.digest }
	l.swarm.ForgetDefinitions(wanted)
	if err := l.opt.Loader.modules.closeUnused(ctx, l.unbind(wanted)); err != nil {
		return err
	}
	return l.dropStored(ctx, wanted)
}

// unbind drops the compositions that are not wanted, and returns the modules of the
// others and of a file that is being loaded.
func (l *Library) unbind(wanted func(digest string) bool) (modules map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.bound, func(digest string, _ *runnable) bool { return !wanted(digest) })
	modules = map[string]bool{}
	maps.Copy(modules, l.loading)
	for _, r := range l.bound {
		for _, m := range r.modules {
			modules[m.Digest()] = true
		}
	}
	l.exec.Bind(l.bindings())
	return modules
}

// dropStored drops the stored definitions that are not wanted here and that no other host may have in force.
func (l *Library) dropStored(ctx context.Context, wanted func(digest string) bool) error {
	list, err := l.store.Definitions(ctx)
	if err != nil {
		return err
	}
	if l.opt.IsAlike != nil {
		if err := l.persistInForce(ctx, list); err != nil {
			return err
		}
	}
	kept, err := l.keptForOthers(ctx, list, wanted)
	for _, d := range list {
		if err == nil && !wanted(d.Digest) && !kept(d) {
			err = l.store.DropDefinition(ctx, d.Tenant, d.Swarm, d.Digest)
		}
	}
	return err
}

// namedModules returns the digests of the modules that records of turns or stored
// definitions name.
func (l *Library) namedModules(ctx context.Context) (map[string]bool, error) {
	if err := l.sweep(ctx); err != nil {
		return nil, err
	}
	named, err := l.store.Modules(ctx)
	if err != nil {
		return nil, err
	}
	list, err := l.store.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	cfg := l.Config()
	for _, d := range list {
		stored, err := l.store.Definition(ctx, d.Tenant, d.Swarm, d.Digest)
		if errors.Is(err, swarm.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		x, err := cfg.RecallComposition(stored.Body)
		if err != nil {
			return nil, err // better one module too many than one too few
		}
		for _, a := range Executables(x) {
			named[a.SHA256] = true
		}
	}
	return named, nil
}
