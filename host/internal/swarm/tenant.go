package swarm

import "skep/host/internal/swarm/scheduler"

// Tenant is the weight and quota of a customer.
type Tenant struct {
	// Weight is the share of turns and of the processor relative to other tenants, 1 by
	// default. It counts only under contention.
	Weight int
	Quota  Quota
}

// Quota bounds a tenant; zero means no limit. Accepted work is never dropped for it:
// turns beyond it wait, posts and sends are refused.
type Quota struct {
	// Turns bounds the turns that run at once, Tasks the tasks.
	Turns, Tasks int
	// Queue bounds the messages that wait in all instances.
	Queue int
	// MessagesPerDay bounds the messages made in a day of UTC, each counted for
	// every recipient.
	MessagesPerDay int64
	// Storage bounds the tenant's data in the store, in bytes.
	Storage int64
	// SpendPerDay bounds what calls of models may cost in a day of UTC.
	SpendPerDay Spend
}

// tenantSet are the configured tenants; others have no limits.
type tenantSet map[string]Tenant

func (t tenantSet) weight(name string) float64 { return float64(max(1, t[name].Weight)) }

// slotRules are the rules by which tenants share the slots of a host, which has a share of the tasks.
func (t tenantSet) slotRules(s *share) scheduler.TenantRules {
	return scheduler.TenantRules{
		Weight: t.weight, Several: len(t) > 1,
		MaxSlots: func(tenant string) int { return s.divide(t[tenant].Quota.Turns) },
	}
}
