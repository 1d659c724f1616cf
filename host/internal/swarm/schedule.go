package swarm

import (
	"container/heap"
	"context"
	"sync"

	"skep/host/internal/fair"
)

// ready is a claim of one (task, agent) on a turn. It may be stale by the time
// it is taken: the taker looks at the task again.
type ready struct {
	task  *live
	agent string
	tier  int
	seq   uint64
	seat  *seat // once it is taken
}

// seat is a slot in use.
type seat struct {
	schedule *schedule
	waits    bool
}

// wait notes whether the turn waits for something other than the processor. A
// turn that does so leaves room in the reserve. Without a seat it does nothing.
func (s *seat) wait(is bool) {
	if s == nil {
		return
	}
	s.schedule.mu.Lock()
	was := s.waits
	s.waits = is
	switch {
	case is && !was:
		s.schedule.waiting++
	case was && !is:
		s.schedule.waiting--
	}
	s.schedule.mu.Unlock()
	if is && !was {
		s.schedule.poke()
	}
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
// Beyond the slots there is a reserve for instances of which no turn runs, as
// large as what is held by turns that only wait, and for tenants that have less
// than their part of the slots: neither who waits nor who floods can keep the
// others from running. Where all compute, the next slot is free in a moment, and
// the reserve would only be a way around the weights. Where there
// are several tenants, one of average weight may run no more turns than would
// still find room, and one that is heavier twice as many at most: whoever comes
// late finds some.
type schedule struct {
	mu      sync.Mutex
	slots   int // free, without the reserve; negative when that is in use
	reserve int // as many as there are slots
	waiting int // turns that wait for something other than the processor
	share   int
	seq     uint64
	quota   func(tenant string) int
	several bool
	tenants *fair.Line[*fair.Line[*readyHeap]]
	wake    chan struct{}
}

func newSchedule(slots int, tenants tenants) *schedule {
	instances := func() *fair.Line[*readyHeap] {
		return fair.New(nil, func() *readyHeap { return &readyHeap{} })
	}
	return &schedule{
		slots: slots, reserve: slots, share: max(1, slots/4),
		quota: tenants.turns, several: len(tenants) > 1,
		tenants: fair.New(tenants.weight, instances), wake: make(chan struct{}, 1),
	}
}

func (s *schedule) push(t *live, agent string, tier int) {
	s.mu.Lock()
	s.seq++
	tenant := s.tenants.Party(t.key.Tenant)
	instance := tenant.Item.Party(t.key.InstanceKey.name())
	heap.Push(instance.Item, ready{task: t, agent: agent, tier: tier, seq: s.seq})
	tenant.Item.Wait(instance)
	s.tenants.Wait(tenant)
	s.mu.Unlock()
	s.poke()
}

// done gives back the slot of a claim.
func (s *schedule) done(r ready) {
	r.seat.wait(false)
	key := r.task.key.InstanceKey
	s.mu.Lock()
	s.slots++
	tenant := s.tenants.Party(key.Tenant)
	tenant.Item.Settle(tenant.Item.Party(key.name()), 0)
	s.tenants.Settle(tenant, 0)
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
	var instance *fair.Party[*readyHeap]
	tenant := s.tenants.Next(func(t *fair.Party[*fair.Line[*readyHeap]]) bool {
		if s.mayRun(t) {
			instance = t.Item.Next(s.within(t))
		}
		return instance != nil
	})
	if tenant == nil {
		return ready{}, false
	}
	r := heap.Pop(instance.Item).(ready)
	tenant.Item.Grant(instance, 1)
	s.tenants.Grant(tenant, 1)
	if instance.Item.Len() == 0 {
		tenant.Item.Leave(instance)
	}
	if tenant.Item.Waiting() == 0 {
		s.tenants.Leave(tenant)
	}
	s.slots--
	r.seat = &seat{schedule: s}
	return r, true
}

// mayRun reports whether a tenant that waits may have another turn.
func (s *schedule) mayRun(t *fair.Party[*fair.Line[*readyHeap]]) bool {
	if most := s.quota(t.Name); most > 0 && t.Busy() >= most {
		return false
	}
	room := float64(s.slots + s.reserve)
	return !s.several || float64(t.Busy()) < room*min(2, s.tenants.Part(t))
}

// within returns which instances of a tenant may have another turn.
func (s *schedule) within(t *fair.Party[*fair.Line[*readyHeap]]) func(*fair.Party[*readyHeap]) bool {
	most := s.share
	if s.slots <= 0 {
		most = 0
		if -s.slots < s.waiting || float64(t.Busy()) < float64(s.reserve)*s.tenants.Share(t) {
			most = 1
		}
	}
	return func(p *fair.Party[*readyHeap]) bool { return p.Busy() < most }
}
