package swarm

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"skep/abi"
)

// Spend is what calls of models have cost, or may cost.
type Spend struct {
	Tokens int64 `json:"tokens,omitempty"`
	// MicroUSD is money in millionths of a dollar.
	MicroUSD int64 `json:"micro_usd,omitempty"`
}

// Add returns the sum of two costs, no more than there are numbers for.
func (s Spend) Add(v Spend) Spend {
	return Spend{sum(s.Tokens, v.Tokens), sum(s.MicroUSD, v.MicroUSD)}
}

// Minus returns the difference of two costs.
func (s Spend) Minus(v Spend) Spend { return s.Add(Spend{-v.Tokens, -v.MicroUSD}) }

// floored is a cost without what is below nothing.
func (s Spend) floored() Spend { return Spend{max(0, s.Tokens), max(0, s.MicroUSD)} }

func sum(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < -math.MaxInt64-b:
		return -math.MaxInt64
	}
	return a + b
}

// daily is what a tenant has spent in a day of UTC, with what is reserved.
type daily struct {
	day int64
	Spend
}

// budget is one bound that a call has to fit into. A bound of zero is none.
type budget struct {
	whose       string
	bound, used Spend
	// tokens and money are the keys that raise it.
	tokens, money string
}

// Reserve takes the most that a call of a model may cost out of the budgets of the
// turn's task, of its agent in that task, and of its tenant's day, or answers LIMIT
// with the key of the one that it does not fit into. What is reserved counts as
// spent until [Turn.Settle] corrects it.
func (t *Turn) Reserve(op abi.Op, most Spend) *abi.Error {
	tenant := t.task.key.Tenant
	if err := t.rt.openDay(t.rt.life, tenant); err != nil {
		return abi.Errorf(abi.CodeInternal, op, "store", "what tenant %q has spent today cannot be read", tenant)
	}
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	today := t.rt.spentToday(tenant)
	for _, b := range t.budgets() {
		if fault := b.refuse(op, most); fault != nil {
			return fault
		}
	}
	if fault := t.rt.dayBudget(tenant, today.Spend).refuse(op, most); fault != nil {
		fault.RetryAfterMS = untilTomorrow(t.rt.now()).Milliseconds()
		return fault
	}
	t.run.spent = t.run.spent.Add(most)
	today.Spend = today.Add(most)
	return nil
}

// Settle corrects what the turn has reserved. The change is mostly negative. The host's
// life before may have reserved it: so the day is read first, or what was spent in it
// would be forgotten.
func (t *Turn) Settle(change Spend) {
	tenant := t.task.key.Tenant
	unread := t.rt.openDay(t.rt.life, tenant) != nil
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.run.spent = t.run.spent.Add(change)
	if unread {
		return // whoever reads it next finds the change in the store
	}
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	today := t.rt.spentToday(tenant)
	today.Spend = today.Add(change).floored()
}

// Spent is what all attempts at the turn have cost, with what is reserved.
func (t *Turn) Spent() Spend {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	return t.run.spent
}

// budgets are those of the turn's task. The caller holds the task's mu.
func (t *Turn) budgets() []budget {
	task, own := t.task.rec.Usage.Spend, t.task.rec.Spent[t.agent.Name]
	for name, rn := range t.task.running {
		more := rn.spent.Minus(t.task.rec.Metered[rn.row.N].Spend)
		task = task.Add(more)
		if name == t.agent.Name {
			own = own.Add(more)
		}
	}
	return []budget{
		{"its task has", t.def.Limits.Spend, task, "[limits] task_tokens", "[limits] task_usd"},
		{fmt.Sprintf("agent %q has in this task", t.agent.Name), t.agent.Limits.Spend, own,
			"[agents." + t.agent.Name + "] limits.tokens", "[agents." + t.agent.Name + "] limits.usd"},
	}
}

func (r *Runtime) dayBudget(tenant string, used Spend) budget {
	return budget{fmt.Sprintf("tenant %q has today (UTC)", tenant), r.quotas[tenant].Quota.SpendPerDay, used,
		"[tenants." + tenant + "] tokens_per_day", "[tenants." + tenant + "] usd_per_day"}
}

// refuse says why a call does not fit.
func (b budget) refuse(op abi.Op, most Spend) *abi.Error {
	want := b.used.Add(most)
	switch {
	case b.bound.Tokens > 0 && want.Tokens > b.bound.Tokens:
		return abi.Errorf(abi.CodeLimit, op, "tokens",
			"the call may use up to %d tokens, and %s used %d of %d; raise %s, or ask for less with max_tokens or a shorter conversation",
			most.Tokens, b.whose, b.used.Tokens, b.bound.Tokens, b.tokens)
	case b.bound.MicroUSD > 0 && want.MicroUSD > b.bound.MicroUSD:
		return abi.Errorf(abi.CodeLimit, op, "usd",
			"the call may cost up to $%s, and %s spent $%s of $%s; raise %s, or ask for less with max_tokens or a shorter conversation",
			dollars(most.MicroUSD), b.whose, dollars(b.used.MicroUSD), dollars(b.bound.MicroUSD), b.money)
	}
	return nil
}

func dollars(micro int64) string { return strconv.FormatFloat(float64(micro)/1e6, 'f', -1, 64) }

// openDay reads what a tenant has spent before this host began. From then on the
// runtime counts itself, in step with the store.
func (r *Runtime) openDay(ctx context.Context, tenant string) error {
	r.mu.Lock()
	open := r.days[tenant] != nil
	r.mu.Unlock()
	if open {
		return nil
	}
	kept, err := r.store.Footprint(ctx, tenant)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.days[tenant] == nil {
		r.days[tenant] = &daily{kept.Day, kept.Spend}
	}
	return nil
}

// spentToday is what a tenant has spent today. The caller holds mu.
func (r *Runtime) spentToday(tenant string) *daily {
	d := r.days[tenant]
	if d == nil {
		d = &daily{} // it was erased under the turn
		r.days[tenant] = d
	}
	if day := dayOf(r.now()); d.day < day {
		*d = daily{day: day}
	}
	return d
}

// recall takes over what earlier attempts at a turn have cost.
func (t *live) recall(rn *run, past *Past) {
	if past == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range past.Entries {
		rn.spent = rn.spent.Add(e.Spend)
	}
}
