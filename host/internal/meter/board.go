package meter

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Owner is the agent that a series is of.
type Owner struct{ Tenant, Swarm, Agent string }

// Label is one name and value of a series.
type Label struct{ Name, Value string }

// Report is one number that an agent reports.
type Report struct {
	Name string
	// Gauge says that Value replaces the one before; else it is added.
	Gauge bool
	// Labels are in the order of their names, which differ.
	Labels []Label
	Value  float64
}

// Series is what the reports of an owner with one name and the same labels stand
// at.
type Series struct {
	Owner
	Report
}

// Limits bound how many series there may be; zero is none.
type Limits struct{ Agent, Tenant int }

// Board has the series of all agents. It is safe for concurrent use.
type Board struct {
	limits Limits

	mu      sync.Mutex
	agents  map[Owner]map[string]*Report
	tenants map[string]int
	refused int64
}

// New returns an empty board.
func New(limits Limits) *Board {
	return &Board{limits: limits, agents: map[Owner]map[string]*Report{}, tenants: map[string]int{}}
}

// id tells a series from the others of its owner. Names have no NUL, and values
// none either.
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

// Excess says which bound has no room for a series.
type Excess int

// What may be exceeded.
const (
	Fits Excess = iota
	AgentFull
	TenantFull
)

// Room reports whether all reports of a batch have a place. One that has none is
// counted as refused.
func (b *Board) Room(o Owner, batch *Batch) Excess {
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

// over says what so many more series would exceed. The caller holds mu.
func (b *Board) over(o Owner, fresh int) Excess {
	switch {
	case fresh == 0:
	case len(b.agents[o])+fresh > b.limits.Agent:
		return AgentFull
	case b.tenants[o.Tenant]+fresh > b.limits.Tenant:
		return TenantFull
	}
	return Fits
}

// Add counts a batch. Reports for which there is no room any more are refused.
func (b *Board) Add(o Owner, batch *Batch) {
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
			b.agents[o][id] = &Report{r.Name, r.Gauge, r.Labels, r.Value}
			b.tenants[o.Tenant]++
		}
	}
}

// Forget drops the series of a tenant.
func (b *Board) Forget(tenant string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tenants, tenant)
	for o := range b.agents {
		if o.Tenant == tenant {
			delete(b.agents, o)
		}
	}
}

// Refused counts the reports that had no place.
func (b *Board) Refused() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// Series returns all series, by name and then by owner.
func (b *Board) Series() []Series {
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
