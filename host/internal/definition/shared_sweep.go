package definition

import (
	"context"
	"errors"
	"maps"
	"time"

	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// settleTime is how long a definition is unwanted at this host before it is dropped where other hosts share the
// store: until they have all put in force what replaced it, they begin tasks with it.
const settleTime = sweepEvery

// Persist stores what is in force here again if hosts with another file have dropped it while this one waited.
func (l *Library) Persist(ctx context.Context) error {
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	defer l.change.Unlock()
	list, err := l.store.Definitions(ctx)
	if err != nil {
		return err
	}
	return l.persistInForce(ctx, list)
}

// persistInForce stores the operator's definition and those that tenants have loaded, unless they are among the stored
// ones. One that was unloaded since, or is of a tenant that was erased, is left out. The caller holds l.change.
func (l *Library) persistInForce(ctx context.Context, list []sqlite.Definition) error {
	if err := l.persist(ctx, "", l.own); err != nil {
		return err
	}
	kept := map[[2]string]bool{}
	for _, d := range list {
		kept[[2]string{d.Tenant, d.Digest}] = true
	}
	missing := maps.Clone(l.loaded)
	maps.DeleteFunc(missing, func(tenant string, d loadedDefinition) bool { return kept[[2]string{tenant, d.digest}] })
	if len(missing) == 0 {
		return nil
	}
	loaded, err := l.store.Loaded(ctx)
	if err != nil {
		return err
	}
	for _, stored := range loaded {
		d, is := missing[stored.Tenant]
		if !is || !d.isFrom(stored) {
			continue
		}
		if err := l.persist(ctx, stored.Tenant, d.runnable); err != nil && !errors.Is(err, swarm.ErrErasing) {
			return err
		}
	}
	return nil
}

// keptForOthers returns which of the stored definitions that this host does not want others may have in force. The
// caller holds l.change.
func (l *Library) keptForOthers(ctx context.Context, list []sqlite.Definition, wanted func(digest string) bool) (func(sqlite.Definition) bool, error) {
	switch {
	case l.opt.IsAlike == nil:
		return func(sqlite.Definition) bool { return false }, nil
	case !l.opt.IsAlike():
		return func(sqlite.Definition) bool { return true }, nil
	}
	loaded, err := l.store.Loaded(ctx)
	if err != nil {
		return nil, err
	}
	unlike := map[string]bool{} // tenants that have another definition at other hosts
	for _, stored := range loaded {
		own, has := l.loaded[stored.Tenant]
		unlike[stored.Tenant] = !has || !own.isFrom(stored)
	}
	now, since := time.Now(), map[string]time.Time{}
	for _, d := range list {
		if wanted(d.Digest) {
			continue
		}
		since[d.Digest] = now
		if before, ok := l.unwanted[d.Digest]; ok {
			since[d.Digest] = before
		}
	}
	l.unwanted = since
	return func(d sqlite.Definition) bool { return unlike[d.Tenant] || now.Sub(since[d.Digest]) < settleTime }, nil
}
