package swarm

import (
	"sync/atomic"

	"skep/host/internal/swarm/scheduler"
)

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

// TenantSet are the configured tenants, by name; others have no limits. A reload replaces the quotas of all at
// once. Weights and names stay. It is safe for concurrent use.
type TenantSet struct {
	inForce atomic.Pointer[map[string]Tenant]
}

// NewTenantSet returns a set of tenants, which must not change.
func NewTenantSet(tenants map[string]Tenant) *TenantSet {
	t := &TenantSet{}
	t.inForce.Store(&tenants)
	return t
}

// Quota returns the quota in force of a tenant.
func (t *TenantSet) Quota(tenant string) Quota { return t.all()[tenant].Quota }

// all are the tenants in force, for reading.
func (t *TenantSet) all() map[string]Tenant { return *t.inForce.Load() }

func (t *TenantSet) weight(name string) float64 { return float64(max(1, t.all()[name].Weight)) }

// slotRules are the rules by which tenants share the slots of a host, which has a share of the tasks.
func (t *TenantSet) slotRules(s *share) scheduler.TenantRules {
	return scheduler.TenantRules{
		Weight: t.weight, Several: len(t.all()) > 1,
		MaxSlots: func(tenant string) int { return s.divide(t.Quota(tenant).Turns) },
	}
}

// ReplaceQuotas puts quotas in force for the tenants that the runtime has. Turns that wait for a quota of turns go
// on; a post or a send is held against either the old quotas or the new ones.
func (r *Runtime) ReplaceQuotas(tenants map[string]Tenant) {
	r.mu.Lock()
	before := r.tenants.all()
	r.tenants.inForce.Store(&tenants)
	for name, d := range r.daySpends {
		d.grantSpent(before[name].Quota.SpendPerDay)
	}
	r.mu.Unlock()
	r.slots.Recheck()
}
