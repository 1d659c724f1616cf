package swarm_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// brokenFootprint is a store that cannot read what tenants keep while it is set.
type brokenFootprint struct {
	swarm.Store
	broken atomic.Bool
}

func (s *brokenFootprint) Footprint(ctx context.Context, tenant string) (swarm.Footprint, error) {
	if s.broken.Load() {
		return swarm.Footprint{}, errors.New("the store is away")
	}
	return s.Store.Footprint(ctx, tenant)
}

// waits notes the longest wait of a message in its queue.
type waits struct{ tier, longest atomic.Int64 }

func (w *waits) Committed(c swarm.Change) {
	if c.Turn != nil && int64(c.Turn.Waited) > w.longest.Load() {
		w.longest.Store(int64(c.Turn.Waited))
		w.tier.Store(int64(c.Turn.Tier))
	}
}

// What is left of quotas, what stands in queues by tier, and how long it stood there.
func TestLoadReport(t *testing.T) {
	store, seen := &brokenFootprint{}, &waits{}
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Tasks: 4, MessagesPerDay: 8}, "free": {}}), func(h *hive) {
		h.wrap = func(s swarm.Store) swarm.Store { store.Store = s; return store }
		h.opt.Observer = seen
	})
	open := blocked(h)
	defer open()
	first := h.mustPost("a", of("acme"), task("one"))
	h.mustPost("b", of("acme"), task("one"))
	left := h.rt.QuotasLeft(t.Context())
	want := []swarm.QuotaLeft{{Tenant: "acme", Quota: "messages_per_day", Left: 0.75}, {Tenant: "acme", Quota: "tasks", Left: 0.75}}
	if len(left) != 2 || left[0] != want[0] || left[1] != want[1] {
		t.Errorf("left is %v, want %v", left, want)
	}
	eventually(t, "the second message waits for the first turn", func() bool {
		return h.rt.CountQueued() == swarm.Queued{mail.TierPerson - 1: 1}
	})
	store.broken.Store(true)
	if left := h.rt.QuotasLeft(t.Context()); len(left) != 0 {
		t.Errorf("while the store is away, left is %v", left)
	}
	store.broken.Store(false)
	open()
	h.answer(first)
	eventually(t, "the queue is empty", func() bool { return h.rt.CountQueued() == swarm.Queued{} })
	eventually(t, "the wait is seen", func() bool { return seen.longest.Load() > int64(time.Microsecond) })
	if tier := seen.tier.Load(); tier != mail.TierPerson {
		t.Errorf("it was of tier %d", tier)
	}
}
