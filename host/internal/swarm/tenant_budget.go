package swarm

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"skep/abi"
)

// Spend is what calls of models have cost, or may cost.
type Spend struct {
	Tokens int64 `json:"tokens,omitempty"`
	// Output is the part of Tokens that models have written. No budget bounds it.
	Output int64 `json:"output_tokens,omitempty"`
	// MicroUSD is money in millionths of a dollar.
	MicroUSD int64 `json:"micro_usd,omitempty"`
}

// Add returns the sum of two costs, bounded by the range of int64.
func (s Spend) Add(v Spend) Spend {
	return Spend{saturatingAdd(s.Tokens, v.Tokens), saturatingAdd(s.Output, v.Output), saturatingAdd(s.MicroUSD, v.MicroUSD)}
}

// Minus returns the difference of two costs.
func (s Spend) Minus(v Spend) Spend { return s.Add(Spend{-v.Tokens, -v.Output, -v.MicroUSD}) }

// floored is a cost without negative parts.
func (s Spend) floored() Spend { return Spend{max(0, s.Tokens), max(0, s.Output), max(0, s.MicroUSD)} }

func saturatingAdd(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < -math.MaxInt64-b:
		return -math.MaxInt64
	}
	return a + b
}

// daySpend is what a tenant has spent, or reserved, in a day of UTC. Where hosts share its budget,
// it is what this host has, and granted what it may.
type daySpend struct {
	day int64
	Spend
	granted Spend
}

// grantSpent grants what was spent without a bound: the server counts it as spent already.
func (d *daySpend) grantSpent(bound Spend) {
	if bound.Tokens <= 0 {
		d.granted.Tokens = max(d.granted.Tokens, d.Tokens)
	}
	if bound.MicroUSD <= 0 {
		d.granted.MicroUSD = max(d.granted.MicroUSD, d.MicroUSD)
	}
}

// budget is one bound that a call has to fit into. A bound of zero is none.
type budget struct {
	whose       string
	bound, used Spend
	// tokens and money are the TOML keys that raise it.
	tokens, money string
}

// reasonTokens is the reason of a call that needs too many tokens.
const reasonTokens = "tokens"

// ReserveSpend reserves the highest cost of a model call in the budgets of the turn's
// task, of its agent in that task, and of its tenant's day. It returns LIMIT with the
// key of the first budget that it exceeds. A reservation counts as spent on its day until
// [Turn.SettleSpend] corrects it.
func (t *Turn) ReserveSpend(op abi.Op, model string, most Spend) (day int64, fault *abi.Error) {
	tenant := t.task.key.Tenant
	if err := t.rt.loadDaySpend(t.rt.lifetime, tenant); err != nil {
		return 0, abi.Errorf(abi.CodeInternal, op, "store", "what tenant %q has spent today cannot be read", tenant)
	}
	day, lacks, fault := t.reserveGranted(op, model, most)
	if fault != nil || lacks == (Spend{}) {
		return day, fault
	}
	// One call after the other asks for more, else each would be granted a slice.
	granting := t.rt.share.grants(tenant)
	granting.Lock()
	defer granting.Unlock()
	for {
		day, lacks, fault := t.reserveGranted(op, model, most)
		if fault == nil && lacks != (Spend{}) {
			fault = t.rt.growGrant(tenant, op, day, most, lacks)
			t.noteDayExceeded(fault)
		}
		if fault != nil || lacks == (Spend{}) {
			return day, fault
		}
	}
}

// reserveGranted reserves for a call, unless this host's part of the tenant's budget lacks
// something for it.
func (t *Turn) reserveGranted(op abi.Op, model string, most Spend) (day int64, lacks Spend, fault *abi.Error) {
	tenant := t.task.key.Tenant
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	today := t.rt.todaySpend(tenant)
	for _, b := range t.budgets() {
		if fault := b.refuse(op, most); fault != nil {
			t.run.noteExceeded(b, fault)
			return 0, Spend{}, fault
		}
	}
	b := t.rt.dayBudget(tenant, today.Spend)
	if t.rt.share.cluster != nil {
		lacks = b.lacks(today.granted, most)
	} else if fault := b.refuse(op, most); fault != nil {
		t.run.noteExceeded(b, fault)
		return 0, Spend{}, t.rt.untilNextDay(fault)
	}
	if lacks == (Spend{}) {
		t.run.addSpend(model, most)
		today.Spend = today.Add(most)
	}
	return today.day, lacks, nil
}

// untilNextDay adds to the refusal of a day's budget when the next one begins.
func (r *Runtime) untilNextDay(fault *abi.Error) *abi.Error {
	fault.RetryAfterMS = untilTomorrow(r.now()).Milliseconds()
	return fault
}

// lacks is what a call needs beyond what is granted of a budget.
func (b budget) lacks(granted, most Spend) (lacks Spend) {
	want := b.used.Add(most).Minus(granted).floored()
	if b.bound.Tokens > 0 {
		lacks.Tokens = want.Tokens
	}
	if b.bound.MicroUSD > 0 {
		lacks.MicroUSD = want.MicroUSD
	}
	return lacks
}

// growGrant makes this host's part of a tenant's budget larger by what a call lacks, or returns
// why the call does not fit.
func (r *Runtime) growGrant(tenant string, op abi.Op, day int64, most, lacks Spend) *abi.Error {
	bound := r.tenants.Quota(tenant).SpendPerDay
	granted, rest, err := r.share.cluster.GrantSpend(r.lifetime, tenant, day, lacks, bound)
	if err != nil {
		return abi.Errorf(abi.CodeInternal, op, "store", "what tenant %q may still spend today cannot be read", tenant)
	}
	if granted == (Spend{}) {
		// The rest and what is left of this host's part are not enough.
		b := r.dayBudget(tenant, bound.Minus(rest).Minus(most.Minus(lacks)))
		b.bound = bound
		if fault := b.refuse(op, most); fault != nil {
			return r.untilNextDay(fault)
		}
		return nil // a reload has taken the bound away: the caller tries again
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if today := r.todaySpend(tenant); today.day == day {
		today.granted = today.granted.Add(granted)
	}
	return nil
}

// SettleSpend corrects a reservation that the turn has made on a day. The change is mostly
// negative, and counts to that day only: it must make no room in the next. An earlier host
// may have made the reservation: the day is loaded first, so that nothing spent in it is
// lost.
func (t *Turn) SettleSpend(model string, day int64, change Spend) {
	tenant := t.task.key.Tenant
	unread := t.rt.loadDaySpend(t.rt.lifetime, tenant) != nil
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.run.addSpend(model, change)
	if unread {
		return // the next load finds the change in the store
	}
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	if today := t.rt.todaySpend(tenant); today.day == day {
		today.Spend = today.Add(change).floored()
	}
}

// Spent is the cost of all attempts at the turn, reservations included.
func (t *Turn) Spent() Spend {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	return t.run.spent
}

// budgets are the budgets of the turn's task and agent. The caller holds the task's mu.
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
	return budget{fmt.Sprintf("tenant %q has today (UTC)", tenant), r.tenants.Quota(tenant).SpendPerDay, used,
		"[tenants." + tenant + "] tokens_per_day", "[tenants." + tenant + "] usd_per_day"}
}

// noteExceeded notes the key of a budget in which a call does not fit. The caller holds the
// task's mu.
func (rn *runningTurn) noteExceeded(b budget, fault *abi.Error) {
	key := b.money
	if fault.Reason == reasonTokens {
		key = b.tokens
	}
	if !slices.Contains(rn.exceeded, key) {
		rn.exceeded = append(rn.exceeded, key)
	}
}

// noteDayExceeded notes that a call does not fit in what the hosts of a store have left of the
// tenant's day.
func (t *Turn) noteDayExceeded(fault *abi.Error) {
	if fault == nil || fault.Code != abi.CodeLimit {
		return
	}
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.run.noteExceeded(t.rt.dayBudget(t.task.key.Tenant, Spend{}), fault)
}

// refuse returns why a call does not fit, nil when it fits.
func (b budget) refuse(op abi.Op, most Spend) *abi.Error {
	want := b.used.Add(most)
	switch {
	case b.bound.Tokens > 0 && want.Tokens > b.bound.Tokens:
		return abi.Errorf(abi.CodeLimit, op, reasonTokens,
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

// loadDaySpend reads what a tenant spent before this host began. From then on the
// runtime counts, in step with the store.
func (r *Runtime) loadDaySpend(ctx context.Context, tenant string) error {
	r.mu.Lock()
	open := r.daySpends[tenant] != nil
	r.mu.Unlock()
	if open || r.share.cluster != nil { // all that hosts spend is granted
		return nil
	}
	kept, err := r.store.Footprint(ctx, tenant)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.daySpends[tenant] == nil {
		r.daySpends[tenant] = &daySpend{day: kept.Day, Spend: kept.Spend}
	}
	return nil
}

// todaySpend is the tenant's cost of today. The caller holds mu.
func (r *Runtime) todaySpend(tenant string) *daySpend {
	d := r.daySpends[tenant]
	if d == nil {
		d = &daySpend{} // the tenant was erased during the turn
		r.daySpends[tenant] = d
	}
	if day := dayOf(r.now()); d.day < day {
		*d = daySpend{day: day}
	}
	return d
}

// addPriorModelUse adds what models have cost in earlier attempts at a turn, and why they failed.
func (t *activeTask) addPriorModelUse(rn *runningTurn, prior *PriorAttempt) {
	if prior == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range prior.Entries {
		rn.addSpend(e.Model, e.Spend)
		if e.ModelFailure != nil {
			rn.noteModelFailure(*e.ModelFailure)
		}
	}
}
