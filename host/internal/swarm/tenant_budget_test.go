package swarm_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// However many turns spend at once, a tenant never passes its budget, and comes
// to its end to the token. Another tenant is not touched.
func TestBudgetOfManyTurns(t *testing.T) {
	t.Parallel()
	const bound, tasks, each = 1000, 20, 70
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {SpendPerDay: swarm.Spend{Tokens: bound}}}))
	var spent, refused atomic.Int64
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		for range each {
			_, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 3})
			if fault != nil {
				refused.Add(1)
				continue
			}
			turn.SettleSpend("", dayOf(turn.Now()), swarm.Spend{Tokens: -2})
			if turn.Key().Tenant == "acme" {
				spent.Add(1)
			}
		}
		return tell(turn, "done")
	}
	var posts sync.WaitGroup
	for n := range tasks {
		posts.Go(func() { h.ask("a", of("acme"), task(fmt.Sprint(n))) })
	}
	posts.Wait()
	// The calls of a turn may all be refused while others hold reservations. One that runs
	// alone spends what is left.
	h.ask("a", of("acme"))
	before := refused.Load()
	h.ask("a", of("free"))
	// The last two tokens are fewer than a call may cost.
	if got := spent.Load(); got != bound-2 || before != (tasks+1)*each-got || refused.Load() != before {
		t.Errorf("%d of %d tokens spent, %d refused, %d of them of the other tenant", got, bound, before, refused.Load()-before)
	}
}

// A new day begins with nothing spent; what was reserved the day before does not
// count against it.
func TestBudgetOfTheNextDay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {SpendPerDay: swarm.Spend{Tokens: 10}}}), func(h *hive) {
		h.opt.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	all := swarm.Spend{Tokens: 10}
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", all); fault != nil {
			t.Error(fault)
		}
		_, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 1})
		if fault == nil || fault.RetryAfterMS != time.Hour.Milliseconds() || !strings.Contains(fault.Message, "[tenants.acme] tokens_per_day") {
			t.Errorf("beyond the day's: %+v", fault)
		}
		mu.Lock()
		now = now.Add(time.Hour)
		mu.Unlock()
		turn.SettleSpend("", dayOf(turn.Now()), swarm.Spend{Tokens: -4})
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", all); fault != nil {
			t.Errorf("the next day: %v", fault)
		}
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 1}); fault == nil {
			t.Error("the next day has no end")
		}
		return tell(turn, "done")
	}
	h.ask("a", of("acme"))
}

// What one agent spends counts for its task and for itself, not for the others.
func TestBudgetOfAnAgent(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) {
		h.def.Limits.Spend.Tokens = 10
		h.def.Agents[0].Limits.Spend.Tokens = 6
	})
	reserve := func(turn *swarm.Turn, n int64) string {
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: n}); fault != nil {
			_, key, _ := strings.Cut(fault.Message, "raise ")
			key, _, _ = strings.Cut(key, ",")
			return key
		}
		return "ok"
	}
	h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		got := reserve(turn, 4) + "; " + reserve(turn, 1)
		call(turn, "send_response", obj{"target": "boss", "subject": "s", "body": got})
		return swarm.Outcome{}
	}
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if m := incoming(turn); m.Payload.Sender.Name == "math" {
			return tell(turn, m.Payload.Body)
		}
		if got := reserve(turn, 6) + "; " + reserve(turn, 1); got != "ok; [agents.boss] limits.tokens" {
			t.Errorf("the boss: %s", got)
		}
		call(turn, "send_request", obj{"target": "math", "subject": "s", "body": "b"})
		return swarm.Outcome{}
	}
	if a := h.ask("a", task("t")); a.Body != "ok; [limits] task_tokens" {
		t.Errorf("the other agent: %s", a.Body)
	}
	snap := h.record("t")
	if got := fmt.Sprint(snap.Task.Spent, snap.Task.Usage.Tokens); got != "map[boss:{6 0 0} math:{4 0 0}] 10" {
		t.Errorf("spent %s", got)
	}
}

// Sums stop where numbers end.
func TestSpendHasNoEnd(t *testing.T) {
	t.Parallel()
	most := swarm.Spend{Tokens: math.MaxInt64, MicroUSD: 5}
	if got := most.Add(most); got != (swarm.Spend{Tokens: math.MaxInt64, MicroUSD: 10}) {
		t.Errorf("%+v", got)
	}
	if got := (swarm.Spend{}).Minus(most).Minus(most); got != (swarm.Spend{Tokens: -math.MaxInt64, MicroUSD: -10}) {
		t.Errorf("%+v", got)
	}
}

// A failed turn on a message from the system has no sender to answer; when nothing else
// is under way, the task ends with its reason.
func TestStalledByAFailureSaysWhy(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) { h.def.Limits.Spend.Tokens = 10 })
	spend := func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 11}); fault != nil {
			return swarm.Outcome{Failure: &swarm.Failure{Cause: "agent", Message: fault.Message}}
		}
		return swarm.Outcome{}
	}
	h.agents.by["math"] = spend
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Sender.Type == mail.System {
			return spend(ctx, turn)
		}
		call(turn, "send_request", obj{"target": "math", "subject": "s", "body": "b"})
		return swarm.Outcome{}
	}
	a := h.ask("a")
	if a.State != swarm.StateFailed || !strings.HasPrefix(a.Body, "stalled: ") || !strings.Contains(a.Body, `; agent "boss" failed (agent): `) || !strings.Contains(a.Body, "raise [limits] task_tokens") {
		t.Errorf("answered %s %q", a.State, a.Body)
	}
}

// A host whose first settlement is for a call of an earlier host still counts what that
// host had spent in the day.
func TestBudgetOfTheLifeBefore(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {SpendPerDay: swarm.Spend{Tokens: 10}}}))
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		nine := swarm.Spend{Tokens: 9}
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", nine); fault != nil {
			t.Error(fault)
		}
		out, header := tell(turn, "done"), turn.Header()
		out.Record = &swarm.Record{
			Header: &header, End: &swarm.TurnEnd{Exit: "ok"},
			Entries: []swarm.Entry{{N: 1, Kind: swarm.EntryCall, Call: "1", Op: abi.OpLLMChat, Spend: nine}},
		}
		return out
	}
	h.ask("a", of("acme"))
	h.restart()
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		turn.SettleSpend("", dayOf(turn.Now()), swarm.Spend{Tokens: -1})
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 3}); fault == nil {
			t.Error("what was spent before the restart is forgotten")
		}
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 2}); fault != nil {
			t.Error(fault)
		}
		return tell(turn, "done")
	}
	h.ask("b", of("acme"))
}

// Agents of one task that spend at once never pass its budget together, and come to its
// end to the token.
func TestBudgetOfAgentsTogether(t *testing.T) {
	t.Parallel()
	const bound, each = 1000, 700
	h := newHive(t, func(h *hive) { h.def.Limits.Spend.Tokens = bound })
	var spent atomic.Int64
	var both sync.WaitGroup
	both.Add(2)
	greedy := func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		both.Done()
		both.Wait()
		for range each {
			if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 3}); fault == nil {
				turn.SettleSpend("", dayOf(turn.Now()), swarm.Spend{Tokens: -2})
				spent.Add(1)
			}
		}
		call(turn, "send_response", obj{"target": "boss", "subject": "s", "body": "done"})
		return swarm.Outcome{}
	}
	h.agents.by["math"], h.agents.by["text"] = greedy, greedy
	heard := 0
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Sender.Type != mail.Agent {
			for _, to := range []string{"math", "text"} {
				call(turn, "send_request", obj{"target": to, "subject": "s", "body": "b"})
			}
			return swarm.Outcome{}
		}
		if heard++; heard < 2 {
			return swarm.Outcome{}
		}
		return tell(turn, "done")
	}
	h.ask("a", task("t"))
	// What the other had reserved may have kept the last of each from fitting.
	if got := spent.Load(); got < bound-4 || got > bound-2 {
		t.Errorf("%d of %d tokens are spent", got, bound)
	}
	if used := h.record("t").Task.Usage.Tokens; used != spent.Load() {
		t.Errorf("the task has used %d, its agents %d", used, spent.Load())
	}
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// What a call of yesterday did not use makes no room in the budget of today, neither in
// this host nor in the next.
func TestBudgetAtMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {SpendPerDay: swarm.Spend{Tokens: 10}}}))
		nine, back := swarm.Spend{Tokens: 9}, swarm.Spend{Tokens: -8}
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			time.Sleep(time.Until(turn.Now().Truncate(24 * time.Hour).Add(24*time.Hour - time.Second)))
			yesterday, fault := turn.ReserveSpend(abi.OpLLMChat, "", nine)
			if fault != nil {
				t.Error(fault)
			}
			time.Sleep(12 * time.Second)
			today, fault := turn.ReserveSpend(abi.OpLLMChat, "", nine)
			if fault != nil || today != yesterday+1 {
				t.Error(today, yesterday, fault)
			}
			turn.SettleSpend("", yesterday, back)
			if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 2}); fault == nil {
				t.Error("yesterday's rest is spent today")
			}
			out, header := tell(turn, "done"), turn.Header()
			entry := func(n int64, day int64, spend swarm.Spend) swarm.Entry {
				return swarm.Entry{N: n, Kind: swarm.EntryCall, Call: "1", Op: abi.OpLLMChat, Spend: spend, Day: day}
			}
			out.Record = &swarm.Record{
				Header: &header, End: &swarm.TurnEnd{Exit: "ok"},
				Entries: []swarm.Entry{entry(1, yesterday, nine), entry(2, today, nine), entry(3, yesterday, back)},
			}
			return out
		}
		time.Sleep(24*time.Hour - 10*time.Second) // the clock of a bubble begins at midnight
		h.ask("a", of("acme"))
		h.restart()
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 2}); fault == nil {
				t.Error("yesterday's rest is spent today, after a restart")
			}
			return tell(turn, "done")
		}
		h.ask("b", of("acme"))
		h.stop()
	})
}
