package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// spender is a host whose callers spend a budget, as the runtime does.
type spender struct {
	*Store
	task  string
	bound swarm.Spend

	mu            sync.Mutex
	used, granted swarm.Spend
	turns         int64
}

const grantDay = 20_000

// reserve reserves part of the budget, or reports that it is used up.
func (h *spender) reserve(t *testing.T, most swarm.Spend) bool {
	for {
		h.mu.Lock()
		lacks := h.used.Add(most).Minus(h.granted)
		lacks = swarm.Spend{Tokens: max(0, lacks.Tokens), MicroUSD: max(0, lacks.MicroUSD)}
		if lacks == (swarm.Spend{}) {
			h.used = h.used.Add(most)
			h.mu.Unlock()
			return true
		}
		h.mu.Unlock()
		granted, _, err := h.GrantSpend(t.Context(), testInstance.Tenant, grantDay, lacks, h.bound)
		if err != nil && !errors.Is(err, swarm.ErrFenced) {
			t.Error(err)
		}
		if err != nil || granted == (swarm.Spend{}) {
			return false
		}
		h.mu.Lock()
		h.granted = h.granted.Add(granted)
		h.mu.Unlock()
	}
}

// call spends at most an amount, some of which comes back. It reports false when the host cannot go
// on.
func (h *spender) call(t *testing.T, most, back swarm.Spend) bool {
	if !h.reserve(t, most) {
		return false
	}
	h.mu.Lock()
	h.turns++
	turn := h.turns
	h.mu.Unlock()
	for n, spend := range []swarm.Spend{most, (swarm.Spend{}).Minus(back)} {
		w := swarm.JournalWrite{Day: grantDay, Entries: []swarm.Entry{{N: int64(n + 1), Spend: spend, Day: grantDay}}}
		if n == 0 {
			w.Header = &swarm.TurnHeader{}
		}
		if _, err := h.Journal(t.Context(), testKey(h.task), turn, w); err != nil {
			if !errors.Is(err, swarm.ErrFenced) {
				t.Error(err)
			}
			return false
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = h.used.Minus(back)
	return true
}

// spend lets callers spend until the budget is used up for them.
func (h *spender) spend(t *testing.T, all *sync.WaitGroup, callers int, seed uint64) {
	for n := range callers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(n)))
			for {
				most := swarm.Spend{Tokens: 1 + rnd.Int64N(300), MicroUSD: 1 + rnd.Int64N(200)}
				if !h.call(t, most, swarm.Spend{Tokens: rnd.Int64N(most.Tokens), MicroUSD: rnd.Int64N(most.MicroUSD)}) {
					return
				}
			}
		})
	}
}

// TestSharedBudget: whatever 64 callers of three hosts spend of a tenant's budget at once, while one
// of the hosts is fenced, it is never more than the budget. What a dead host did not spend is free
// for the others, so that the last one spends all of it.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	bound := swarm.Spend{Tokens: 40_000, MicroUSD: 30_000}
	var hosts []*spender
	for n := range 3 {
		h := &spender{Store: openShared(t, dsn), task: fmt.Sprint("t", n), bound: bound}
		give(t, h.Store, h.task)
		if err := h.Commit(t.Context(), testStep(h.task, 1)); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	last := hosts[0]
	kill := func(h *spender) {
		t.Helper()
		if _, err := last.keyring.db.ExecContext(t.Context(), "UPDATE hosts SET dead = true WHERE hid = ?", h.HID()); err != nil {
			t.Fatal(err)
		}
	}
	spent := func() swarm.Spend {
		t.Helper()
		f, err := last.Footprint(t.Context(), testInstance.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		if f.Tokens > bound.Tokens || f.MicroUSD > bound.MicroUSD {
			t.Fatalf("%+v of %+v are spent", f.Spend, bound)
		}
		return f.Spend
	}
	var all sync.WaitGroup
	for n, callers := range []int{22, 21, 21} {
		hosts[n].spend(t, &all, callers, uint64(n))
	}
	for spent().Tokens < bound.Tokens/3 && !t.Failed() {
	}
	kill(hosts[2])
	all.Wait()
	spent()
	kill(hosts[1])
	for n := bound.Tokens; n > 0; n /= 2 {
		for last.call(t, swarm.Spend{Tokens: n}, swarm.Spend{}) {
		}
		for last.call(t, swarm.Spend{MicroUSD: n}, swarm.Spend{}) {
		}
	}
	if got := spent(); got != bound {
		t.Errorf("the last host comes to its end at %+v of %+v", got, bound)
	}
}

// TestSharedBudgetComes: of a budget that comes in the midst of a day, all that the day has left is granted to hosts, also
// where one of them has spent more than it was granted.
func TestSharedBudgetComes(t *testing.T) {
	t.Parallel()
	dsn, bound := pgtest.Schema(t), swarm.Spend{Tokens: 1000}
	first := &spender{Store: openShared(t, dsn), task: "first", bound: bound}
	other := &spender{Store: openShared(t, dsn), task: "other", bound: bound}
	for _, h := range []*spender{first, other} {
		give(t, h.Store, h.task)
		if err := h.Commit(t.Context(), testStep(h.task, 1)); err != nil {
			t.Fatal(err)
		}
	}
	call := func(h *spender, tokens int64) bool { return h.call(t, swarm.Spend{Tokens: tokens}, swarm.Spend{}) }
	if !call(first, 1) {
		t.Fatal("the first call is refused")
	}
	first.granted = swarm.Spend{Tokens: 300} // a reload takes the budget away, and another one brings it back
	if !call(first, 299) || !call(first, 10) {
		t.Error("a call of 10 is refused, of 700 that are left")
	}
	n := int64(0)
	for call(other, 1) {
		n++
	}
	held := first.granted.Minus(first.used).Tokens
	if n+held+310 != bound.Tokens || held > bound.Tokens/slicePart {
		t.Errorf("310 of 1000 are spent and %d held, and the other host may spend %d", held, n)
	}
}

// TestSharedBudgetDay: a day that is over for one host has nothing left for another, and the next
// one has all of it. An erased tenant leaves no grant.
func TestSharedBudgetDay(t *testing.T) {
	t.Parallel()
	s := openShared(t, pgtest.Schema(t))
	one, bound := swarm.Spend{Tokens: 1}, swarm.Spend{Tokens: 100}
	grant := func(day int64, least swarm.Spend) swarm.Spend {
		t.Helper()
		granted, _, err := s.GrantSpend(t.Context(), "acme", day, least, bound)
		if err != nil {
			t.Fatal(err)
		}
		return granted
	}
	grants := func() (n int) {
		t.Helper()
		if err := s.keyring.db.QueryRowContext(t.Context(), "SELECT count(*) FROM day_grants").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := grant(7, one); got != (swarm.Spend{Tokens: 2}) {
		t.Errorf("the first grant is %+v", got)
	}
	if got := grant(7, swarm.Spend{Tokens: 99}); got != (swarm.Spend{}) {
		t.Errorf("a grant beyond what is left: %+v", got)
	}
	if got := grant(8, bound); got != bound {
		t.Errorf("the next day: %+v", got)
	}
	if got := grant(7, one); got != (swarm.Spend{}) {
		t.Errorf("a grant of a day that is over: %+v", got)
	}
	if n := grants(); n != 1 {
		t.Errorf("%d grants are kept", n)
	}
	if err := s.Erase(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if n := grants(); n != 0 {
		t.Errorf("%d grants are kept of an erased tenant", n)
	}
}
