package swarm

import (
	"context"
	"maps"
	"slices"
	"time"
)

// TenantNames lists the tenants of the file and those that keep anything, by name.
func (r *Runtime) TenantNames(ctx context.Context) ([]string, error) {
	kept, err := r.store.TenantNames(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.AppendSeq(kept, maps.Keys(r.quotas))
	slices.Sort(names)
	return slices.Compact(names), nil
}

// KnowsTenant reports whether a tenant is one of [Runtime.TenantNames].
func (r *Runtime) KnowsTenant(ctx context.Context, tenant string) (bool, error) {
	if _, configured := r.quotas[tenant]; configured {
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

// QuotaUse returns how much a tenant stores, and uses of each of its quotas.
func (r *Runtime) QuotaUse(ctx context.Context, tenant string) (Footprint, []QuotaUse, error) {
	kept, err := r.store.Footprint(ctx, tenant)
	if err != nil {
		return Footprint{}, nil, err
	}
	open, err := r.countOpen(ctx, tenant, quotaDemand{tasks: 1})
	if err != nil {
		return Footprint{}, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var has tenantLoad
	if tl := r.tenantLoads[tenant]; tl != nil {
		has = *tl
	}
	quota := r.quotas[tenant].Quota
	use := []QuotaUse{
		{Name: "tasks", Limit: int64(quota.Tasks), Used: int64(max(open, has.running+has.tasks)), Local: quota.Tasks <= 0 && r.share.cluster != nil},
		{Name: "queue", Limit: int64(quota.Queue), Used: int64(has.waiting + has.rows + r.othersWaiting(tenant)), Local: quota.Queue <= 0 && r.share.cluster != nil},
	}
	return kept, append(use, quota.StoredUse(kept, r.now())...), nil
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
