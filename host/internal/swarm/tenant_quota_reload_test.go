package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// replaceQuotas puts quotas in force for the tenants of a running host.
func (h *hive) replaceQuotas(quotas map[string]swarm.Quota) { h.rt.ReplaceQuotas(tenantsOf(quotas)) }

// TestReplacedQuota: a tenant at its quota goes on as soon as a higher one is in force, and is refused by a lower one
// that it has passed. What was accepted before is not refused.
func TestReplacedQuota(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]struct {
		low, high swarm.Quota
		size      int
		retry     time.Duration
	}{
		"tasks":            {swarm.Quota{Tasks: 1}, swarm.Quota{Tasks: 2}, 1, 5 * time.Second},
		"queue":            {swarm.Quota{Queue: 1}, swarm.Quota{Queue: 2}, 1, 5 * time.Second},
		"messages_per_day": {swarm.Quota{MessagesPerDay: 1}, swarm.Quota{MessagesPerDay: 2}, 1, 24 * time.Hour},
		"storage":          {swarm.Quota{Storage: 1 << 15}, swarm.Quota{}, 1 << 16, time.Hour},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			h := newHive(t, withTenants(map[string]swarm.Quota{"acme": c.low}), func(h *hive) { h.opt.Now = func() time.Time { return midnight } })
			open := blocked(h)
			defer open()
			body := strings.Repeat("x", c.size)
			first := h.mustPost(body, of("acme"))
			refused := func(when string) {
				t.Helper()
				if _, err := h.post(body, of("acme")); err == nil {
					t.Errorf("%s: a post is accepted", when)
				} else {
					wantLimit(t, err, c.retry, `tenant "acme"`, "[tenants.acme] "+key)
				}
			}
			refused("with the first quota")
			h.replaceQuotas(map[string]swarm.Quota{"acme": c.high})
			second := h.mustPost(body, of("acme"))
			h.replaceQuotas(map[string]swarm.Quota{"acme": c.low})
			refused("with the lower quota again")
			open()
			for _, accepted := range []*swarm.Receipt{first, second} {
				if a := h.answer(accepted); a.State != swarm.StateCompleted {
					t.Errorf("what was accepted has ended as %+v", a)
				}
			}
		})
	}
}

// TestReplacedQuotaOfTurns: a turn that waits for its tenant's quota of turns begins when the quota is raised, though
// nothing else happens.
func TestReplacedQuotaOfTurns(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Turns: 1}}))
	began := make(chan string, 2)
	gate := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		turn.CPU().Release()
		began <- incoming(turn).Payload.Body
		<-gate
		if err := turn.CPU().Acquire(context.WithoutCancel(ctx)); err != nil {
			return failed(err)
		}
		return script(ctx, turn)
	}
	defer close(gate)
	h.mustPost("one", of("acme"))
	<-began
	h.mustPost("two", of("acme"), func(p *swarm.Post) { p.Principal.ID = "bob" })
	select {
	case body := <-began:
		t.Fatalf("%q begins beyond the quota", body)
	case <-time.After(50 * time.Millisecond):
	}
	h.replaceQuotas(map[string]swarm.Quota{"acme": {Turns: 2}})
	<-began
}

// TestReplacedQuotaUnderFlood: while tenants post, quotas come and go. Only the tenant whose quota is passed is
// refused, each refusal names it, and in the end all is by the last quotas.
func TestReplacedQuotaUnderFlood(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {}}))
	stop := make(chan struct{})
	var posts sync.WaitGroup
	for i := range 4 {
		tenant := []string{"acme", "free"}[i%2]
		posts.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := h.post("x", of(tenant), func(p *swarm.Post) { p.Principal.ID = fmt.Sprint("u", i) })
				if err != nil && (tenant == "free" || !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "[tenants.acme] ")) {
					t.Errorf("post %d of %s: %v", n, tenant, err)
					return
				}
			}
		})
	}
	quotas := []swarm.Quota{{Tasks: 1}, {Queue: 1}, {MessagesPerDay: 1}, {Storage: 1}, {Turns: 1}, {}}
	for i := range 300 {
		h.replaceQuotas(map[string]swarm.Quota{"acme": quotas[i%len(quotas)]})
		if _, err := h.rt.QuotaUse(t.Context(), "acme"); err != nil {
			t.Error(err)
		}
		h.rt.QuotasLeft(t.Context())
	}
	close(stop)
	posts.Wait()
	if a := h.ask("x", of("acme")); a.State != swarm.StateCompleted {
		t.Errorf("without quotas: %+v", a)
	}
	h.replaceQuotas(map[string]swarm.Quota{"acme": {MessagesPerDay: 1}})
	if _, err := h.post("x", of("acme")); !errors.Is(err, swarm.ErrLimit) {
		t.Errorf("beyond the last quota: %v", err)
	}
}

// TestReplacedBudget: of a budget that comes by reload, what a host of several has spent of the day is spent once.
func TestReplacedBudget(t *testing.T) {
	t.Parallel()
	s := &sharedBudget{left: map[int64]swarm.Spend{}}
	h, _ := s.share(t, swarm.Spend{})
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 600}); fault != nil {
			t.Errorf("without a budget: %v", fault)
		}
		h.replaceQuotas(map[string]swarm.Quota{"acme": {SpendPerDay: swarm.Spend{Tokens: 1000}}})
		s.left[dayOf(turn.Now())] = swarm.Spend{Tokens: 400} // as the server counts: the budget without what is spent
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 400}); fault != nil {
			t.Errorf("of 400 that are left: %v", fault)
		}
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 1}); fault == nil {
			t.Error("1001 of 1000 are spent")
		}
		return tell(turn, "done")
	}
	h.ask("a", of("acme"))
}
