package swarm

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"
)

// UsageCount is what turns of an agent have used. A turn counts with its computing under no
// model, its calls of each model under that model, and its failure under the cause.
type UsageCount struct {
	UsageKey
	UsageSum
}

// UsageKey is what usage is counted by, beside tenant and minute.
type UsageKey struct{ Agent, Model, Cause string }

// UsageSum is what some turns have used.
type UsageSum struct {
	Turns, Failures, Fuel int64
	CPU                   time.Duration
	Spend
}

// Add returns the sum of two sums.
func (s UsageSum) Add(v UsageSum) UsageSum {
	return UsageSum{
		saturatingAdd(s.Turns, v.Turns), saturatingAdd(s.Failures, v.Failures), saturatingAdd(s.Fuel, v.Fuel),
		time.Duration(saturatingAdd(int64(s.CPU), int64(v.CPU))), s.Spend.Add(v.Spend),
	}
}

// UsageBy names what usage is summed by.
type UsageBy string

// The values of [UsageBy].
const (
	UsageByTenant UsageBy = "tenant"
	UsageByAgent  UsageBy = "agent"
	UsageByModel  UsageBy = "model"
	UsageByMinute UsageBy = "minute"
	UsageByHour   UsageBy = "hour"
	UsageByDay    UsageBy = "day"
)

// Span is the time that one group is of; 0 for groups that are of no time.
func (b UsageBy) Span() time.Duration {
	switch b {
	case UsageByMinute:
		return time.Minute
	case UsageByHour:
		return time.Hour
	case UsageByDay:
		return day
	}
	return 0
}

// UsageQuery selects usage: of all tenants if it has no Tenant. Agent and Model select all if
// they are empty.
type UsageQuery struct {
	Tenant, Agent, Model string
	// Since and Until bound the minutes of the commits; Until is not part of them.
	Since, Until time.Time
	By           UsageBy
}

// UsageGroup is the usage of a tenant, of an agent of a tenant, of a model, or of a time.
type UsageGroup struct {
	Tenant, Agent, Model string
	At                   time.Time
	UsageSum
	// Causes counts failures.
	Causes map[string]int64
}

// UsageKept is how long the usage of a minute is kept, UsageRows how many counts are kept of a
// tenant at most: of more the oldest minutes go first.
const (
	UsageKept = 7 * 24 * time.Hour
	UsageRows = 200_000
)

// meterTurn counts what an attempt has added to the usage of its turn. had is the cost of
// models that earlier attempts have added.
func (mut *mutationBuilder) meterTurn(rn *runningTurn, more Usage, had MeteredTurn) {
	agent, before := rn.row.Agent, had.Models
	if before == nil && had.Spend != (Spend{}) { // an older host counted no models
		before = map[string]Spend{"": had.Spend}
	}
	mut.addCount(UsageKey{Agent: agent}, UsageSum{Turns: more.Turns, Fuel: int64(min(more.Fuel, math.MaxInt64)), CPU: more.CPU})
	models := maps.Clone(rn.spentOn)
	if models == nil {
		models = map[string]Spend{}
	}
	for model, spent := range before {
		models[model] = models[model].Minus(spent)
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		mut.addCount(UsageKey{Agent: agent, Model: model}, UsageSum{Spend: models[model]})
	}
}

// addCount adds a count to the mutation.
func (mut *mutationBuilder) addCount(key UsageKey, sum UsageSum) {
	if sum != (UsageSum{}) {
		mut.Usage = append(mut.Usage, UsageCount{key, sum})
	}
}

// Usage sums what turns have used, by what q names; see [Tenants.Usage].
func (r *Runtime) Usage(ctx context.Context, q UsageQuery) ([]UsageGroup, error) {
	return r.store.Usage(ctx, q)
}
