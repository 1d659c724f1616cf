package swarm

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// KnowsTenant reports whether a tenant is in the file, or keeps anything.
func (r *Runtime) KnowsTenant(ctx context.Context, tenant string) (bool, error) {
	if _, configured := r.tenants.all()[tenant]; configured {
		return true, nil
	}
	return r.store.HasData(ctx, tenant)
}

// QuotaUse is how much of a quota a tenant uses.
type QuotaUse struct {
	// Name is the key in [tenants.NAME], as storage; usd_per_day is in millionths of a dollar.
	Name string
	// Limit is 0 for none.
	Limit, Used int64
	// Local means that only what this host works on is counted, and bounded; otherwise it is
	// what all hosts have that share the store.
	Local bool
}

// TenantQuotaUse is a tenant with what it stores, and uses of each of its quotas.
type TenantQuotaUse struct {
	TenantFootprint
	Quota []QuotaUse
}

// TenantUses lists tenants of the file and those that keep anything, with a name greater than after, by
// name: at most limit. more reports whether others follow.
func (r *Runtime) TenantUses(ctx context.Context, after string, limit int) (list []TenantQuotaUse, more bool, err error) {
	kept, err := r.store.TenantFootprints(ctx, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	byName := func(f TenantFootprint, name string) int { return strings.Compare(f.Tenant, name) }
	for _, name := range slices.Sorted(maps.Keys(r.tenants.all())) {
		if i, found := slices.BinarySearchFunc(kept, name, byName); !found && name > after {
			kept = slices.Insert(kept, i, TenantFootprint{Tenant: name})
		}
	}
	more = len(kept) > limit
	list, err = r.quotaUses(ctx, kept[:min(limit, len(kept))])
	return list, more, err
}

// QuotaUse returns how much a tenant stores, and uses of each of its quotas.
func (r *Runtime) QuotaUse(ctx context.Context, tenant string) (TenantQuotaUse, error) {
	kept, err := r.store.Footprint(ctx, tenant)
	if err != nil {
		return TenantQuotaUse{}, err
	}
	list, err := r.quotaUses(ctx, []TenantFootprint{{tenant, kept}})
	if err != nil {
		return TenantQuotaUse{}, err
	}
	return list[0], nil
}

// quotaUses adds to what tenants store what they use of each of their quotas.
func (r *Runtime) quotaUses(ctx context.Context, kept []TenantFootprint) ([]TenantQuotaUse, error) {
	open, err := r.countAllOpen(ctx, kept)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]TenantQuotaUse, len(kept))
	for i, f := range kept {
		list[i] = TenantQuotaUse{f, append(r.loadUse(f.Tenant, open[f.Tenant]), r.tenants.Quota(f.Tenant).StoredUse(f.Footprint, r.now())...)}
	}
	return list, nil
}

// countAllOpen is [Runtime.countOpen] for tenants whose tasks have a bound.
func (r *Runtime) countAllOpen(ctx context.Context, tenants []TenantFootprint) (map[string]int, error) {
	var bounded []string
	for _, f := range tenants {
		if r.tenants.Quota(f.Tenant).Tasks > 0 {
			bounded = append(bounded, f.Tenant)
		}
	}
	if r.share.cluster == nil || len(bounded) == 0 {
		return nil, nil
	}
	return r.share.cluster.CountRunning(ctx, bounded)
}

// loadUse is how much of the quotas of what runs and waits is used; open tasks run at all hosts. The caller holds mu.
func (r *Runtime) loadUse(tenant string, open int) []QuotaUse {
	var has tenantLoad
	if tl := r.tenantLoads[tenant]; tl != nil {
		has = *tl
	}
	quota := r.tenants.Quota(tenant)
	return []QuotaUse{
		{Name: "tasks", Limit: int64(quota.Tasks), Used: int64(max(open, has.running+has.tasks)), Local: quota.Tasks <= 0 && r.share.cluster != nil},
		{Name: "queue", Limit: int64(quota.Queue), Used: int64(has.waiting + has.rows + r.othersWaiting(tenant)), Local: quota.Queue <= 0 && r.share.cluster != nil},
	}
}

// StoredUse is how much of the quotas that hold for the whole store is used by now.
func (q Quota) StoredUse(kept Footprint, now time.Time) []QuotaUse {
	if kept.Day != dayOf(now) {
		kept.Made, kept.Spend = 0, Spend{}
	}
	return []QuotaUse{
		{Name: "messages_per_day", Limit: q.MessagesPerDay, Used: kept.Made},
		{Name: "storage", Limit: q.Storage, Used: kept.Bytes},
		{Name: "tokens_per_day", Limit: q.SpendPerDay.Tokens, Used: kept.Tokens},
		{Name: "usd_per_day", Limit: q.SpendPerDay.MicroUSD, Used: kept.MicroUSD},
	}
}
