package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// sharedBudget is what hosts share of a tenant's budget: what is left of each day.
type sharedBudget struct {
	mu    sync.Mutex
	left  map[int64]swarm.Spend
	fails error
	asked int
	// holds keeps the tenant "slow" waiting for its grant, nil for none.
	holds chan struct{}
}

// sharingHost is one of the hosts that share a budget.
type sharingHost struct {
	*sharedBudget
	granted swarm.Spend
	// others is what it sees of other hosts, nil for none.
	others *otherHosts
	// running are the tasks of tenants that run at all hosts; counts is how often they were counted.
	running map[string]int
	counts  int
}

// otherHosts are the hosts that a runtime shares limits with.
type otherHosts struct {
	mu      sync.Mutex
	n       int
	changed chan struct{}
	loads   map[string]int64
}

func newOtherHosts(n int) *otherHosts { return &otherHosts{n: n, changed: make(chan struct{})} }

// set makes it another number of hosts.
func (o *otherHosts) set(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n = n
	close(o.changed)
	o.changed = make(chan struct{})
}

// show makes the others have what hosts show.
func (o *otherHosts) show(hosts ...*hive) {
	loads := map[string]int64{}
	for _, h := range hosts {
		for name, n := range h.rt.SharedLoads() {
			loads[name] += n
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads = loads
}

func (*sharingHost) Alive() bool { return true }

func (s *sharingHost) Workers() int {
	if s.others == nil {
		return 1
	}
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	return 1 + s.others.n
}

func (s *sharingHost) OthersLoad(name string) int64 {
	if s.others == nil {
		return 0
	}
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	return s.others.loads[name]
}

func (s *sharingHost) Changed() <-chan struct{} {
	if s.others == nil {
		return nil
	}
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	return s.others.changed
}

func (*sharingHost) Claim(context.Context, []slot.Slot) ([]swarm.RunningTask, error) { return nil, nil }

func (s *sharingHost) CountRunning(context.Context, []string) (map[string]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts++
	return s.running, nil
}

func (*sharingHost) Deaths() map[swarm.TurnID]swarm.Deaths { return nil }

// GrantSpend grants what is asked for, and no more.
func (s *sharingHost) GrantSpend(_ context.Context, tenant string, day int64, least, bound swarm.Spend) (granted, rest swarm.Spend, err error) {
	if tenant == "slow" && s.holds != nil {
		<-s.holds
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	left, ok := s.left[day]
	if !ok {
		left = bound
	}
	if s.fails != nil || least.Tokens > left.Tokens && bound.Tokens > 0 || least.MicroUSD > left.MicroUSD && bound.MicroUSD > 0 {
		return granted, left, s.fails
	}
	s.left[day] = left.Minus(least)
	s.granted = s.granted.Add(least)
	return least, left, nil
}

// share starts a runtime that shares a budget and works on all tasks.
func (s *sharedBudget) share(t *testing.T, bound swarm.Spend, change ...func(*hive)) (*hive, *sharingHost) {
	t.Helper()
	one := &sharingHost{sharedBudget: s}
	tenants := withTenants(map[string]swarm.Quota{"acme": {SpendPerDay: bound}})
	h := newHive(t, append([]func(*hive){tenants, func(h *hive) { h.opt.Cluster = one }}, change...)...)
	slots := make([]slot.Slot, slot.Tasks)
	for n := range slots {
		slots[n] = slot.Slot(n)
	}
	if err := h.rt.Gained(t.Context(), slots); err != nil {
		t.Fatal(err)
	}
	return h, one
}

// TestSharedBudgetOfManyTurns: however many turns of two hosts spend at once, their tenant never
// passes its budget, and each host comes to the end of what it was granted and of what is left. A
// tenant without a budget asks for nothing.
func TestSharedBudgetOfManyTurns(t *testing.T) {
	t.Parallel()
	const bound, tasks, each = 1000, 20, 70
	s := &sharedBudget{left: map[int64]swarm.Spend{}}
	type host struct {
		*hive
		*sharingHost
		spent atomic.Int64
	}
	hosts := []*host{{}, {}}
	for _, h := range hosts {
		h.hive, h.sharingHost = s.share(t, swarm.Spend{Tokens: bound})
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			for range each {
				if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 3}); fault != nil {
					continue
				}
				turn.SettleSpend("", dayOf(turn.Now()), swarm.Spend{Tokens: -2})
				if turn.Key().Tenant == "acme" {
					h.spent.Add(1)
				}
			}
			return tell(turn, "done")
		}
	}
	var posts sync.WaitGroup
	for _, h := range hosts {
		for n := range tasks {
			posts.Go(func() { h.ask("a", of("acme"), task(fmt.Sprint(n))) })
		}
	}
	posts.Wait()
	asked, granted, spent := s.asked, int64(0), int64(0)
	for _, h := range hosts {
		h.ask("a", of("acme"))
		asked = s.asked
		h.ask("a", of("free"))
		if s.asked != asked {
			t.Error("a grant is asked for where there is no budget")
		}
		granted, spent = granted+h.granted.Tokens, spent+h.spent.Load()
		// A call needs three, of what is granted or is left.
		if unspent := h.granted.Tokens - h.spent.Load(); unspent < 0 || unspent+bound-hosts[0].granted.Tokens-hosts[1].granted.Tokens >= 3 {
			t.Errorf("a host has spent %d of %d that it was granted", h.spent.Load(), h.granted.Tokens)
		}
	}
	if granted > bound || spent > granted || asked == 0 {
		t.Errorf("%d of %d are granted, %d spent, with %d questions", granted, bound, spent, asked)
	}
}

// TestSharedBudgetRefusal: a call that fits into what its host was granted asks nobody. One that
// does not is refused with what is used on all hosts, until the next day; while the store cannot be
// asked, it fails and may be tried again.
func TestSharedBudgetRefusal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	today := dayOf(now)
	var ahead atomic.Int64
	for name, in := range map[string]func(n int64) swarm.Spend{
		"tokens_per_day": func(n int64) swarm.Spend { return swarm.Spend{Tokens: n} },
		"usd_per_day":    func(n int64) swarm.Spend { return swarm.Spend{MicroUSD: n * 1_000_000} },
	} {
		ahead.Store(0)
		s := &sharedBudget{left: map[int64]swarm.Spend{today: in(6)}} // another host has four
		h, _ := s.share(t, in(10), func(h *hive) {
			h.opt.Now = func() time.Time { return now.Add(time.Duration(ahead.Load())) }
		})
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			reserve := func(n int64, asks int, code abi.Code, used string) {
				t.Helper()
				before := s.asked
				_, fault := turn.ReserveSpend(abi.OpLLMChat, "", in(n))
				switch {
				case s.asked-before != asks:
					t.Errorf("%s: a call of %d asks %d times for a grant, want %d", name, n, s.asked-before, asks)
				case (code == 0) != (fault == nil):
					t.Errorf("%s: a call of %d: %v", name, n, fault)
				case fault != nil && (fault.Code != code || !strings.Contains(fault.Message, used)):
					t.Errorf("%s: a call of %d: %+v", name, n, fault)
				case code == abi.CodeLimit && (fault.RetryAfterMS != time.Hour.Milliseconds() || !strings.Contains(fault.Message, "[tenants.acme] "+name)):
					t.Errorf("%s: a call of %d: %+v", name, n, fault)
				}
			}
			reserve(7, 1, abi.CodeLimit, "4 of ")
			s.fails = errors.New("no store")
			reserve(6, 1, abi.CodeInternal, `"acme"`)
			s.fails = nil
			reserve(6, 1, 0, "")
			turn.SettleSpend("", today, in(-2))
			reserve(1, 0, 0, "")
			reserve(2, 1, abi.CodeLimit, "9 of ")
			ahead.Store(int64(time.Hour))
			s.left[today+1] = in(8)
			turn.SettleSpend("", today, in(-5)) // no room in the next day
			reserve(8, 1, 0, "")
			return tell(turn, "done")
		}
		h.ask("a", of("acme"))
	}
}

// TestSharedBudgetOfTwoTenants: a tenant whose grant the server is slow to give keeps no other waiting.
func TestSharedBudgetOfTwoTenants(t *testing.T) {
	t.Parallel()
	s := &sharedBudget{left: map[int64]swarm.Spend{}, holds: make(chan struct{})}
	quota := swarm.Quota{SpendPerDay: swarm.Spend{Tokens: 1000}}
	h, _ := s.share(t, swarm.Spend{}, withTenants(map[string]swarm.Quota{"slow": quota, "quick": quota}))
	waits := make(chan struct{}, 1)
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if turn.Key().Tenant == "slow" {
			waits <- struct{}{}
		}
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 3}); fault != nil {
			t.Error(fault)
		}
		return tell(turn, "done")
	}
	var slow sync.WaitGroup
	slow.Go(func() { h.ask("a", of("slow")) })
	<-waits
	quick := make(chan struct{})
	go func() {
		h.ask("a", of("quick"))
		close(quick)
	}()
	select {
	case <-quick:
	case <-time.After(time.Minute):
		t.Error("a tenant waits for another one's grant")
	}
	close(s.holds)
	slow.Wait()
	<-quick
}
