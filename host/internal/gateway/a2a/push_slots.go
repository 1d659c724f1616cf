package a2a

import (
	"context"

	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm/scheduler"
)

// pushesAtOnce is the number of attempts that run at once; as many more run for tenants
// and realms that have less than their part. One realm or user has a quarter at most.
const pushesAtOnce = 8

// pushSlots shares the attempts of pushes fairly among tenants, and within a tenant among
// realms and users: an address that never answers delays its owner's pushes only.
type pushSlots struct {
	slots *scheduler.Slots[pushWaiter]
}

// pushWaiter is an attempt that waits for its slot.
type pushWaiter struct {
	ctx   context.Context
	ready chan *scheduler.Slot[pushWaiter]
}

func newPushSlots() pushSlots {
	return pushSlots{scheduler.NewSlots[pushWaiter](pushesAtOnce, scheduler.TenantRules{
		MaxSlots: func(string) int { return 0 }, Several: true,
	})}
}

// run hands out slots until ctx ends.
func (p pushSlots) run(ctx context.Context) {
	for {
		slot, ok := p.slots.Next(ctx)
		if !ok {
			return
		}
		select {
		case slot.Item.ready <- slot:
		case <-slot.Item.ctx.Done():
			slot.Release()
		}
	}
}

// acquire waits for a slot for the owner of a record.
func (p pushSlots) acquire(ctx context.Context, key state.Key) (release func(), err error) {
	w := pushWaiter{ctx, make(chan *scheduler.Slot[pushWaiter])}
	p.slots.Push(scheduler.Owner{Tenant: key.Tenant, Instance: key.Realm}, 0, w)
	select {
	case slot := <-w.ready:
		return slot.Release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
