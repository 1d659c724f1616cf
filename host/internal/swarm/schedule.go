package swarm

import (
	"container/heap"
	"context"
	"sync"
)

// ready is a claim of one (task, agent) on a turn. It may be stale by the time
// it is taken: the taker looks at the task again.
type ready struct {
	task  *live
	agent string
	tier  int
	seq   uint64
}

// readyHeap orders claims by tier, then by the time they were made.
type readyHeap []ready

func (h readyHeap) Len() int      { return len(h) }
func (h readyHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(x any)   { *h = append(*h, x.(ready)) }
func (h readyHeap) Less(i, j int) bool {
	if h[i].tier != h[j].tier {
		return h[i].tier < h[j].tier
	}
	return h[i].seq < h[j].seq
}

func (h *readyHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = ready{}
	*h = old[:len(old)-1]
	return last
}

// schedule decides who gets the next turn: tenants share by weight, the instances
// of a tenant equally, and within an instance the highest tier comes first. At
// most slots turns run at once, and at most share of them for one instance.
// Beyond the slots there is a reserve for instances of which no turn runs, so
// that a few which only wait cannot keep all others from running. Where there
// are several tenants, one of average weight may run no more turns than would
// still find room, and one that is heavier twice as many at most: whoever comes
// late finds some.
type schedule struct {
	mu      sync.Mutex
	slots   int // free, without the reserve; negative when that is in use
	reserve int
	share   int
	seq     uint64
	quota   func(tenant string) int
	several bool
	tenants *fair[*fair[*readyHeap]]
	wake    chan struct{}
}

func newSchedule(slots int, tenants tenants) *schedule {
	instances := func() *fair[*readyHeap] {
		return newFair(nil, func() *readyHeap { return &readyHeap{} })
	}
	return &schedule{
		slots: slots, reserve: slots, share: max(1, slots/4),
		quota: tenants.turns, several: len(tenants) > 1,
		tenants: newFair(tenants.weight, instances), wake: make(chan struct{}, 1),
	}
}

func (s *schedule) push(t *live, agent string, tier int) {
	s.mu.Lock()
	s.seq++
	tenant := s.tenants.party(t.key.Tenant)
	instance := tenant.item.party(t.key.InstanceKey.name())
	heap.Push(instance.item, ready{t, agent, tier, s.seq})
	tenant.item.wait(instance)
	s.tenants.wait(tenant)
	s.mu.Unlock()
	s.poke()
}

// done gives back the slot of a claim.
func (s *schedule) done(key InstanceKey) {
	s.mu.Lock()
	s.slots++
	tenant := s.tenants.party(key.Tenant)
	tenant.item.settle(tenant.item.party(key.name()), 0)
	s.tenants.settle(tenant, 0)
	s.mu.Unlock()
	s.poke()
}

func (s *schedule) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next waits for a claim and a slot and takes both. ok is false when ctx ends.
func (s *schedule) next(ctx context.Context) (r ready, ok bool) {
	for {
		if r, ok := s.take(); ok {
			return r, true
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ready{}, false
		}
	}
}

func (s *schedule) take() (ready, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots <= -s.reserve {
		return ready{}, false
	}
	var instance *party[*readyHeap]
	tenant := s.tenants.next(func(t *party[*fair[*readyHeap]]) bool {
		if s.mayRun(t) {
			instance = t.item.next(s.within)
		}
		return instance != nil
	})
	if tenant == nil {
		return ready{}, false
	}
	r := heap.Pop(instance.item).(ready)
	tenant.item.grant(instance, 1)
	s.tenants.grant(tenant, 1)
	if instance.item.Len() == 0 {
		tenant.item.leave(instance)
	}
	if len(tenant.item.line) == 0 {
		s.tenants.leave(tenant)
	}
	s.slots--
	return r, true
}

// mayRun reports whether a tenant that waits may have another turn.
func (s *schedule) mayRun(t *party[*fair[*readyHeap]]) bool {
	if most := s.quota(t.name); most > 0 && t.busy >= most {
		return false
	}
	room := float64(s.slots + s.reserve)
	return !s.several || float64(t.busy) < room*min(2, s.tenants.part(t))
}

// within reports whether an instance may have another turn.
func (s *schedule) within(p *party[*readyHeap]) bool {
	if s.slots <= 0 {
		return p.busy == 0
	}
	return p.busy < s.share
}
