package swarm

import (
	"cmp"
	"context"
	"slices"

	"skep/spec/mail"
)

// Queued are the messages that stand in queues, those of tier 1 first.
type Queued [mail.TierMail]int

// CountQueued counts the messages that stand in the queues of tasks in memory. Turns that run
// and timers are left out.
func (r *Runtime) CountQueued() (n Queued) {
	r.mu.Lock()
	tasks := make([]*activeTask, 0, len(r.tasks))
	for _, t := range r.tasks {
		tasks = append(tasks, t)
	}
	r.mu.Unlock()
	for _, t := range tasks {
		t.countQueued(&n)
	}
	return n
}

func (t *activeTask) countQueued(n *Queued) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.queue {
		for i := range *q { // by index: a row is large
			if tier := (*q)[i].Tier; tier > 0 && tier <= len(n) {
				n[tier-1]++
			}
		}
	}
}

// QuotaLeft is what a tenant has left of a quota, from 1 to 0.
type QuotaLeft struct {
	Tenant, Quota string
	Left          float64
}

// QuotasLeft lists what tenants have left of their quotas, by tenant. The quotas have the names
// of their keys in [tenants.NAME]. A tenant whose data cannot be read is left out.
func (r *Runtime) QuotasLeft(ctx context.Context) (list []QuotaLeft) {
	for tenant := range r.tenants.all() {
		left, err := r.quotasLeft(ctx, tenant)
		if err == nil {
			list = append(list, left...)
		}
	}
	slices.SortFunc(list, func(a, b QuotaLeft) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Quota, b.Quota))
	})
	return list
}

func (r *Runtime) quotasLeft(ctx context.Context, tenant string) (list []QuotaLeft, err error) {
	q := r.tenants.Quota(tenant)
	var kept Footprint
	if q.Storage > 0 || q.MessagesPerDay > 0 || q.SpendPerDay != (Spend{}) {
		if kept, err = r.store.Footprint(ctx, tenant); err != nil {
			return nil, err
		}
	}
	if kept.Day != dayOf(r.now()) {
		kept.Made, kept.Spend = 0, Spend{}
	}
	open, err := r.countOpen(ctx, tenant, quotaDemand{tasks: 1})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	var has load
	if tl := r.tenantLoads[tenant]; tl != nil {
		has = tl.load
	}
	r.mu.Unlock()
	add := func(key string, used, bound int64) {
		if bound > 0 {
			list = append(list, QuotaLeft{tenant, key, max(0, 1-float64(used)/float64(bound))})
		}
	}
	add("tasks", int64(max(open, has.running)), int64(q.Tasks))
	add("queue", int64(has.waiting+r.othersWaiting(tenant)), int64(q.Queue))
	add("messages_per_day", kept.Made, q.MessagesPerDay)
	add("storage", kept.Bytes, q.Storage)
	add("tokens_per_day", kept.Tokens, q.SpendPerDay.Tokens)
	add("usd_per_day", kept.MicroUSD, q.SpendPerDay.MicroUSD)
	return list, nil
}
