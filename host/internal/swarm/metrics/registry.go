package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Owner is the agent of a series.
type Owner struct{ Tenant, Swarm, Agent string }

// Label is one name and value of a series.
type Label struct{ Name, Value string }

// Report is one number that an agent reports.
type Report struct {
	Name string
	// Gauge means that Value replaces the previous one; else it is added.
	Gauge bool
	// Labels are sorted by name; names differ.
	Labels []Label
	Value  float64
	// Erased is what tenants that were erased had counted in a series that differs in the tenant
	// only, so that a sum over tenants never falls.
	Erased float64
}

// Series is the current value of an owner's reports with one name and the same labels.
type Series struct {
	Owner
	Report
}

// Limits bound the number of series; zero allows none.
type Limits struct{ Agent, Tenant int }

// Registry holds the series of all agents. It is safe for concurrent use.
type Registry struct {
	limits Limits

	mu      sync.Mutex
	agents  map[Owner]map[string]*Report
	tenants map[string]int
	refused int64
}

// New returns an empty registry.
func New(limits Limits) *Registry {
	return &Registry{limits: limits, agents: map[Owner]map[string]*Report{}, tenants: map[string]int{}}
}

// id identifies a series of an owner. Names and values contain no NUL.
func (r Report) id() string {
	var b strings.Builder
	b.WriteString(r.Name)
	if r.Gauge {
		b.WriteByte(0)
	}
	for _, l := range r.Labels {
		b.WriteString("\x00" + l.Name + "\x00" + l.Value)
	}
	return b.String()
}

// Excess is the bound that has no room for a series.
type Excess int

// The bounds that may be exceeded.
const (
	Fits Excess = iota
	AgentFull
	TenantFull
)

// Check returns the bound that a batch would exceed, and counts a refused batch.
func (b *Registry) Check(o Owner, batch *Batch) Excess {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := 0
	for id := range batch.reports {
		if b.agents[o][id] == nil {
			fresh++
		}
	}
	over := b.over(o, fresh)
	if over != Fits {
		b.refused++
	}
	return over
}

// over returns the bound that so many more series would exceed. The caller holds mu.
func (b *Registry) over(o Owner, fresh int) Excess {
	switch {
	case fresh == 0:
	case len(b.agents[o])+fresh > b.limits.Agent:
		return AgentFull
	case b.tenants[o.Tenant]+fresh > b.limits.Tenant:
		return TenantFull
	}
	return Fits
}

// Add counts a batch. Reports that exceed a bound by now are refused.
func (b *Registry) Add(o Owner, batch *Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range batch.order {
		r := batch.reports[id]
		has := b.agents[o][id]
		switch {
		case has != nil && r.Gauge:
			has.Value = r.Value
		case has != nil:
			has.Value += r.Value
		case b.over(o, 1) != Fits:
			b.refused++
		default:
			if b.agents[o] == nil {
				b.agents[o] = map[string]*Report{}
			}
			b.agents[o][id] = &Report{Name: r.Name, Gauge: r.Gauge, Labels: r.Labels, Value: r.Value}
			b.tenants[o.Tenant]++
		}
	}
}

// Forget drops the series of a tenant. What it has counted stays as a number alone, where another
// tenant has the same series.
func (b *Registry) Forget(tenant string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tenants, tenant)
	for o, reports := range b.agents {
		if o.Tenant != tenant {
			continue
		}
		delete(b.agents, o)
		for id, r := range reports {
			if r.Gauge {
				continue
			}
			if heir := b.sameSeries(o, id); heir != nil {
				heir.Erased += r.Value + r.Erased
			}
		}
	}
}

// sameSeries finds the series of another tenant that differs in the tenant only, nil for none. Of
// several it is the one of the first by name.
func (b *Registry) sameSeries(o Owner, id string) (found *Report) {
	var first string
	for other, reports := range b.agents {
		if other.Tenant == o.Tenant || other.Swarm != o.Swarm || other.Agent != o.Agent || reports[id] == nil {
			continue
		}
		if found == nil || other.Tenant < first {
			found, first = reports[id], other.Tenant
		}
	}
	return found
}

// Refused counts the refused reports.
func (b *Registry) Refused() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// Series returns all series, by name and then by owner.
func (b *Registry) Series() []Series {
	type keyed struct {
		id string
		Series
	}
	var all []keyed
	b.mu.Lock()
	for o, reports := range b.agents {
		for id, r := range reports {
			all = append(all, keyed{id, Series{o, *r}})
		}
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y keyed) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.Swarm, y.Swarm),
			cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.id, y.id))
	})
	out := make([]Series, len(all))
	for i, k := range all {
		out[i] = k.Series
	}
	return out
}
