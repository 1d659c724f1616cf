package definition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"skep/host/internal/store/sqlite"
)

// Refresh puts in force what other hosts have loaded for their tenants, and unloaded, since this one has read it.
// A tenant whose new definition cannot be read keeps what it has, and the error is returned.
func (l *Library) Refresh(ctx context.Context) error {
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	defer l.change.Unlock()
	list, err := l.store.Loaded(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	unloaded := maps.Clone(l.loaded)
	l.mu.Unlock()
	var errs []error
	listed := map[string]bool{}
	for _, stored := range list {
		listed[stored.Tenant] = true
		before, had := unloaded[stored.Tenant]
		delete(unloaded, stored.Tenant)
		if had && before.isFrom(stored) {
			continue
		}
		err := l.refreshLoaded(ctx, stored)
		if isUnreadable(err) {
			l.logUnused(slog.LevelError, "a definition that came over the network cannot be read; its tenant keeps the one before at this host. Load it again, or unload it", stored, err)
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the definition of tenant %q: %w", stored.Tenant, err))
		}
	}
	for tenant := range unloaded {
		errs = append(errs, l.resetToFile(tenant))
	}
	maps.DeleteFunc(l.unused, func(tenant string, _ time.Time) bool { return !listed[tenant] })
	return errors.Join(errs...)
}

// isUnreadable reports whether a stored definition is damaged. Its key may have been unreadable for a moment.
func isUnreadable(err error) bool { return sqlite.IsDamaged(err) || errors.Is(err, errNoJSON) }

// logUnused logs, once, that a stored definition is not in force at this host. The caller holds l.change, or
// has l alone.
func (l *Library) logUnused(level slog.Level, message string, stored sqlite.Loaded, err error) {
	if at, logged := l.unused[stored.Tenant]; logged && at.Equal(stored.At) {
		return
	}
	l.unused[stored.Tenant] = stored.At
	l.log.Log(context.Background(), level, message, "tenant", stored.Tenant, "swarm", stored.Swarm, "by", stored.By, "err", err)
}

// rereadUnused reads again what other hosts have loaded if some of it could not be read.
func (l *Library) rereadUnused(ctx context.Context) error {
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	none := len(l.unused) == 0
	l.change.Unlock()
	if none {
		return nil
	}
	return l.Refresh(ctx)
}

// refreshLoaded puts a tenant's stored definition in force. The caller holds l.change.
func (l *Library) refreshLoaded(ctx context.Context, stored sqlite.Loaded) error {
	if _, served := l.swarm.Definition(stored.Tenant, l.own.def.Name); !served {
		return nil
	}
	d, err := l.restoreLoaded(ctx, &l.state, stored)
	switch {
	case err != nil:
		return err
	case d.runnable == nil:
		return l.resetToFile(stored.Tenant)
	default:
		return l.putLoaded(stored.Tenant, d)
	}
}
