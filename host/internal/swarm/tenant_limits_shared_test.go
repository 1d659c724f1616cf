package swarm_test

import (
	"context"
	"testing"

	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// shareLimits starts a runtime of tenants beside other hosts. It works on all tasks.
func shareLimits(t *testing.T, others *otherHosts, quotas map[string]swarm.Quota, change ...func(*hive)) *hive {
	t.Helper()
	one := &sharingHost{sharedBudget: &sharedBudget{left: map[int64]swarm.Spend{}}, others: others}
	h := newHive(t, append([]func(*hive){withTenants(quotas), func(h *hive) { h.opt.Cluster = one }}, change...)...)
	all := make([]slot.Slot, slot.Tasks)
	for n := range all {
		all[n] = slot.Slot(n)
	}
	if err := h.rt.Gained(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestTurnsOfHosts: a tenant has its part of `turns` at each host, rounded up, and more once another host has gone.
func TestTurnsOfHosts(t *testing.T) {
	t.Parallel()
	others, began, gate := newOtherHosts(1), make(chan string, 10), make(chan struct{})
	h := shareLimits(t, others, map[string]swarm.Quota{"acme": {Turns: 3}}, func(h *hive) {
		h.agents.by = map[string]behave{"boss": func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			began <- turn.Key().Tenant
			turn.CPU().Release()
			<-gate
			if err := turn.CPU().Acquire(context.WithoutCancel(ctx)); err != nil {
				return failed(err)
			}
			return script(ctx, turn)
		}}
	})
	defer close(gate)
	by := func(id string) func(*swarm.Post) { return func(p *swarm.Post) { p.Principal.ID = id } }
	for _, id := range []string{"a", "b", "c"} {
		h.mustPost("hello", of("acme"), by(id))
	}
	for range 2 {
		if tenant := <-began; tenant != "acme" {
			t.Fatalf("a turn of %q began", tenant)
		}
	}
	for _, id := range []string{"d", "e"} { // they wait behind the tenant's third
		h.mustPost("hello", of("free"), by(id))
		if tenant := <-began; tenant != "free" {
			t.Fatal("the tenant has more turns than its part of the limit")
		}
	}
	others.set(0)
	if tenant := <-began; tenant != "acme" {
		t.Errorf("a turn of %q began when a host had gone", tenant)
	}
}
