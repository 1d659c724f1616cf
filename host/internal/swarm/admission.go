package swarm

import "fmt"

// Admission makes the store refuse a mutation with [ErrQuota] if its tenant would have more than the
// bounds with it. Hosts that share a store need it, since each knows its own posts alone. Other stores
// ignore it: the runtime has counted before.
type Admission struct {
	// Starts: the mutation makes a task run. Rows are the messages that it makes, and Keeps means that it may
	// be refused for what it stores.
	Starts bool
	Rows   int
	Keeps  bool
	Bounds AdmissionBounds
	// Has is what the tenant has without the mutation, and Adds how many bytes it would add. The store sets
	// both when it refuses.
	Has  TenantUse
	Adds int64
}

// AdmissionBounds are the parts of a [Quota] that hosts share. Zero is none.
type AdmissionBounds struct {
	Tasks                   int
	MessagesPerDay, Storage int64
}

// TenantUse is what a tenant has at all hosts: tasks that run, messages made in the mutation's day, and bytes.
type TenantUse struct {
	Running     int
	Made, Bytes int64
}

// Exceeds reports whether a use that the mutation is part of is beyond its bounds.
func (a *Admission) Exceeds(use TenantUse) bool {
	b := a.Bounds
	return b.Tasks > 0 && a.Starts && use.Running > b.Tasks ||
		b.MessagesPerDay > 0 && a.Rows > 0 && use.Made > b.MessagesPerDay ||
		b.Storage > 0 && a.Keeps && use.Bytes > b.Storage
}

// Without returns a use without the mutation, which adds bytes.
func (a *Admission) Without(use TenantUse, bytes int64) TenantUse {
	if a.Starts {
		use.Running--
	}
	use.Made -= int64(a.Rows)
	use.Bytes -= bytes
	return use
}

// CountsTasks reports whether tasks have a bound for the mutation.
func (a *Admission) CountsTasks() bool { return a.Starts && a.Bounds.Tasks > 0 }

// admission returns what the store is to check of a demand, nil where the runtime has counted all.
func (r *Runtime) admission(tenant string, d quotaDemand) *Admission {
	q := r.tenants.Quota(tenant)
	bounds := AdmissionBounds{Tasks: q.Tasks, MessagesPerDay: q.MessagesPerDay, Storage: q.Storage}
	if r.share.cluster == nil || bounds == (AdmissionBounds{}) {
		return nil
	}
	return &Admission{Starts: d.tasks > 0, Rows: d.rows, Keeps: d.keeps, Bounds: bounds}
}

// refusal is why a mutation was refused with [ErrQuota].
func (a *Admission) refusal(r *Runtime, tenant string) error {
	q := r.tenants.Quota(tenant)
	q.Queue = 0
	d := quotaDemand{rows: a.Rows, keeps: a.Keeps, bytes: a.Adds}
	if a.Starts {
		d.tasks = 1
	}
	over := q.check(tenant, d, tenantLoad{load: load{running: a.Has.Running}}, Footprint{Bytes: a.Has.Bytes, Made: a.Has.Made}, r.now())
	if over == nil { // the store has other bounds
		return &Refusal{Kind: ErrLimit, Text: fmt.Sprintf("tenant %q has used up its quota; try later", tenant), Cause: "quota"}
	}
	return over.refusal(tenant)
}
