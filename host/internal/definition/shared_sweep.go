package definition

import (
	"context"
	"time"

	"skep/host/internal/store/sqlite"
)

// settleTime is how long a definition is unwanted at this host before it is dropped where other hosts share the
// store: until they have all put in force what replaced it, they begin tasks with it.
const settleTime = sweepEvery

// Persist stores the operator's definition again if hosts with another file have dropped it while this one waited.
func (l *Library) Persist(ctx context.Context) error {
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	defer l.change.Unlock()
	return l.persist(ctx, "", l.own)
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
