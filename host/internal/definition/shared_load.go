package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"skep/host/internal/store/sqlite"
)

// Refresh puts in force what other hosts have loaded for their tenants, and unloaded, since this one has read it.
// A tenant whose new definition cannot be read keeps what it has, and the error is returned.
func (l *Library) Refresh(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	list, err := l.store.Loaded(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	unloaded := maps.Clone(l.loaded)
	l.mu.Unlock()
	var errs []error
	for _, stored := range list {
		before, had := unloaded[stored.Tenant]
		delete(unloaded, stored.Tenant)
		if had && before.at.Equal(stored.At) && before.by == stored.By {
			continue
		}
		if err := l.refreshLoaded(ctx, stored); err != nil {
			errs = append(errs, fmt.Errorf("the definition of tenant %q: %w", stored.Tenant, err))
		}
	}
	for tenant := range unloaded {
		errs = append(errs, l.resetToFile(tenant))
	}
	return errors.Join(errs...)
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
