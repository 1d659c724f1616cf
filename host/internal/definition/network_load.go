package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/definition/narrowing"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// Load replaces a tenant's definition by one that came over the network.
func (l *Library) Load(ctx context.Context, tenant, by string, text []byte) (name string, err error) {
	if err := l.change.Lock(ctx); err != nil {
		return "", err
	}
	defer l.change.Unlock()
	if l.damaged[tenant] {
		return "", conflict("the definition that tenant '%s' had loaded cannot be read: unload it, and load again after the host's next start", tenant)
	}
	r, err := l.admit(text)
	var refused narrowing.Refused
	if errors.As(err, &refused) {
		return "", &swarm.Refusal{Kind: swarm.ErrInvalid, Text: refused.Error()}
	}
	if err == nil {
		err = l.checkQuarantine(tenant, r)
	}
	if err == nil {
		err = l.reserveDefinition(ctx, tenant, r.digest)
	}
	if err != nil {
		return "", err
	}
	d := loadedDefinition{r, by, time.Now()}
	err = l.store.LoadDefinition(ctx, sqlite.Loaded{Tenant: tenant, Swarm: r.def.Name, At: d.at, By: by, Text: text}, storedForm(tenant, r))
	if err != nil {
		stored, found, unread := l.findLoaded(ctx, tenant)
		if unread != nil || !found || !stored.At.Equal(d.at) {
			return "", err
		}
	}
	return r.def.Name, l.putLoaded(tenant, d)
}

// putLoaded puts a definition in force for a tenant that is served. The caller holds l.change.
func (l *Library) putLoaded(tenant string, d loadedDefinition) error {
	l.mu.Lock()
	l.setLoaded(tenant, d)
	r := l.loaded[tenant].runnable // the one that earlier tasks have, if it is the same
	l.exec.Bind(l.bindings())
	l.mu.Unlock()
	return l.swarm.ReplaceDefinitions([]swarm.Definition{r.forTenant(tenant)})
}

// findLoaded finds what the store has as a tenant's loaded definition: a write that it
// reported as failed may be durable.
func (l *Library) findLoaded(ctx context.Context, tenant string) (found sqlite.Loaded, ok bool, err error) {
	list, err := l.store.Loaded(context.WithoutCancel(ctx))
	i := slices.IndexFunc(list, func(d sqlite.Loaded) bool { return d.Tenant == tenant })
	if err != nil || i < 0 {
		return sqlite.Loaded{}, false, err
	}
	return list[i], true, nil
}

// reserveDefinition refuses one stored definition too many for a tenant, after a sweep.
// The caller holds l.change.
func (l *Library) reserveDefinition(ctx context.Context, tenant, digest string) error {
	quota, _ := l.Config().Tenant(tenant)
	if most := int64(quota.Storage); most > 0 {
		kept, err := l.store.Footprint(ctx, tenant)
		if err != nil {
			return err
		}
		if kept.Bytes >= most {
			return &swarm.Refusal{Kind: swarm.ErrLimit, Retry: sweepEvery, Text: fmt.Sprintf(
				"tenant '%s' has %d bytes stored, its quota; raise [tenants.%s] storage, or shorten [store] history_retention", tenant, kept.Bytes, tenant)}
		}
	}
	if full, err := l.isFull(ctx, quota, digest); !full || err != nil {
		return err
	}
	if err := l.sweepLocked(ctx); err != nil {
		return err
	}
	if full, err := l.isFull(ctx, quota, digest); !full || err != nil {
		return err
	}
	return &swarm.Refusal{Kind: swarm.ErrLimit, Retry: sweepEvery, Text: fmt.Sprintf(
		"tenant '%s' has %d definitions, the most there may be: the one in force and those that its unfinished tasks were begun with; finish or cancel tasks of older ones, then load again, or raise [tenants.%s] definitions",
		tenant, quota.Definitions, tenant)}
}

// isFull reports whether a tenant has all the stored definitions it may have, and none
// with the digest.
func (l *Library) isFull(ctx context.Context, tenant config.Tenant, digest string) (bool, error) {
	list, err := l.store.Definitions(ctx)
	n := 0
	for _, d := range list {
		switch {
		case d.Tenant != tenant.Name:
		case d.Digest == digest:
			return false, err
		default:
			n++
		}
	}
	return n >= tenant.Definitions, err
}

// Damaged lists the tenants that are not served because their loaded definition cannot be
// read.
func (l *Library) Damaged() []string { return slices.Sorted(maps.Keys(l.current().damaged)) }

// Unload gives a tenant the operator's definition. Quarantine does not stop it: which
// agents run on a module is the operator's choice, and agents in quarantine stay there. A
// tenant whose loaded definition cannot be read is served from the next start on.
func (l *Library) Unload(ctx context.Context, tenant string) error {
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	defer l.change.Unlock()
	if err := l.store.UnloadDefinition(ctx, tenant, l.own.def.Name); err != nil {
		if _, found, unread := l.findLoaded(ctx, tenant); unread != nil || found {
			return err
		}
	}
	if l.damaged[tenant] { // its tasks were not taken up when the host started
		return conflict("the definition of tenant '%s' that could not be read is unloaded; the tenant is served again from the host's next start", tenant)
	}
	return l.resetToFile(tenant)
}

// resetToFile puts the operator's definition in force for a tenant. The caller holds
// l.change.
func (l *Library) resetToFile(tenant string) error {
	l.mu.Lock()
	delete(l.loaded, tenant)
	own := l.own
	l.mu.Unlock()
	if _, served := l.swarm.Definition(tenant, own.def.Name); !served {
		return nil
	}
	return l.swarm.ReplaceDefinitions([]swarm.Definition{own.forTenant(tenant)})
}

// Erase stops a tenant's work and removes everything that is stored of it; the store
// removes its tokens. Files go last: an erasure that fails before can be repeated, and
// then finds nothing else. No task of the tenant begins before its end.
func (l *Library) Erase(ctx context.Context, tenant string) error {
	if l.opt.EraseAll != nil {
		return l.opt.EraseAll(ctx, tenant)
	}
	had := false
	last := func() (failed error) {
		had, failed = l.ForgetTenant(context.WithoutCancel(ctx), tenant)
		return failed
	}
	err := l.swarm.EraseTenant(ctx, tenant, last)
	if !errors.Is(err, swarm.ErrNotFound) {
		return err
	}
	if failed := last(); failed != nil || had {
		return failed
	}
	return err
}

// ForgetTenant removes the files of a tenant that is erased on this host, and gives it the operator's
// definition. It reports whether there were any files.
func (l *Library) ForgetTenant(ctx context.Context, tenant string) (had bool, err error) {
	had, err = eraseFiles(l.current().files, tenant)
	return had, errors.Join(l.resetErased(ctx, tenant), err)
}

// ForgetErased gives tenants that other hosts have erased since this one was opened the operator's definition. While
// the store cannot be read, all keep their own.
func (l *Library) ForgetErased(ctx context.Context) error {
	list, err := l.store.Loaded(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	erased := maps.Clone(l.loaded)
	l.mu.Unlock()
	for _, d := range list {
		delete(erased, d.Tenant)
	}
	var errs []error
	for tenant := range erased {
		errs = append(errs, l.resetErased(ctx, tenant))
	}
	return errors.Join(errs...)
}

// resetErased gives an erased tenant the operator's definition, unless it has loaded
// another since. A stored definition that cannot be read is not in force.
func (l *Library) resetErased(ctx context.Context, tenant string) error {
	l.tools.closeTenant(tenant)
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	defer l.change.Unlock()
	_, found, err := l.findLoaded(ctx, tenant)
	if found {
		return nil
	}
	return errors.Join(err, l.resetToFile(tenant))
}

// InForce is a definition that a tenant's new tasks run on.
type InForce struct {
	Swarm, Digest string
	// Origin is "file" or "network"; By and At are set for the network.
	Origin, By string
	At         time.Time
	Definition json.RawMessage
}

// InForce returns the definition that a tenant's new tasks run on.
func (l *Library) InForce(tenant string) InForce {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.inForce(tenant)
	in := InForce{Swarm: r.def.Name, Digest: r.digest, Origin: "file", Definition: json.RawMessage(r.composition.JSON())}
	if d, loaded := l.loaded[tenant]; loaded {
		in.Origin, in.By, in.At = "network", d.by, d.at
	}
	return in
}
