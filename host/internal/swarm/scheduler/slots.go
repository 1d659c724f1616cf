package scheduler

import (
	"container/heap"
	"context"
	"sync"
)

// Owner is the instance, within its tenant, that waits for a slot or a token.
type Owner struct{ Tenant, Instance string }

// Slots decides which waiting item gets the next slot: tenants share by weight, the
// instances of a tenant equally, and within an instance the highest tier comes first.
// At most size slots are in use, and at most share of them by one instance.
//
// Beyond the slots there is a reserve. It serves instances without a slot, for as many
// slots as are held by turns that only wait, and for tenants that have less than their
// part of the slots: neither waiting nor flooding keeps others from running. Where all
// turns compute, the next slot is free in a moment, and the reserve would only
// circumvent the weights.
//
// Where there are several tenants, a tenant of average weight may hold no more slots
// than are still left, and a heavier one twice as many at most, so that a tenant that
// comes late finds some. Slots is safe for concurrent use.
type Slots[T any] struct {
	mu      sync.Mutex
	free    int // without the reserve; negative when the reserve is in use
	reserve int // as many as there are slots
	waiting int // slots whose holders wait for something other than the processor
	share   int
	seq     uint64
	rules   TenantRules
	tenants *FairQueue[*FairQueue[*itemHeap[T]]]
	wake    chan struct{}
}

// TenantRules are how [Slots] treats tenants.
type TenantRules struct {
	Weight func(tenant string) float64
	// MaxSlots bounds the slots of one tenant; 0 is no bound. See [Slots.Recheck].
	MaxSlots func(tenant string) int
	// Several is set when more than one tenant is configured.
	Several bool
}

// Slot is a slot in use by an item.
type Slot[T any] struct {
	Item T

	slots   *Slots[T]
	owner   Owner
	waiting bool
}

// queued is an item that waits for a slot.
type queued[T any] struct {
	item  T
	owner Owner
	tier  int
	seq   uint64
}

// NewSlots returns as many slots as size.
func NewSlots[T any](size int, rules TenantRules) *Slots[T] {
	instances := func() *FairQueue[*itemHeap[T]] {
		return NewFairQueue(nil, func() *itemHeap[T] { return &itemHeap[T]{} })
	}
	return &Slots[T]{
		free: size, reserve: size, share: max(1, size/4), rules: rules,
		tenants: NewFairQueue(rules.Weight, instances), wake: make(chan struct{}, 1),
	}
}

// Push makes an item wait for a slot.
func (s *Slots[T]) Push(owner Owner, tier int, item T) {
	s.mu.Lock()
	s.seq++
	tenant := s.tenants.Member(owner.Tenant)
	instance := tenant.Item.Member(owner.Instance)
	heap.Push(instance.Item, queued[T]{item: item, owner: owner, tier: tier, seq: s.seq})
	tenant.Item.Enqueue(instance)
	s.tenants.Enqueue(tenant)
	s.mu.Unlock()
	s.signal()
}

func (s *Slots[T]) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Recheck makes Next look again: a tenant's bound may have grown.
func (s *Slots[T]) Recheck() { s.signal() }

// Next waits for an item and a slot and takes both. ok is false when ctx ends. One
// goroutine at a time may call it.
func (s *Slots[T]) Next(ctx context.Context) (slot *Slot[T], ok bool) {
	for {
		if slot, ok := s.tryNext(); ok {
			return slot, true
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (s *Slots[T]) tryNext() (*Slot[T], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free <= -s.reserve {
		return nil, false
	}
	var instance *Member[*itemHeap[T]]
	tenant := s.tenants.Next(func(t *Member[*FairQueue[*itemHeap[T]]]) bool {
		if s.tenantMayRun(t) {
			instance = t.Item.Next(s.instanceMayRun(t))
		}
		return instance != nil
	})
	if tenant == nil {
		return nil, false
	}
	next := heap.Pop(instance.Item).(queued[T])
	tenant.Item.Grant(instance, 1)
	s.tenants.Grant(tenant, 1)
	if instance.Item.Len() == 0 {
		tenant.Item.Dequeue(instance)
	}
	if tenant.Item.Waiting() == 0 {
		s.tenants.Dequeue(tenant)
	}
	s.free--
	return &Slot[T]{Item: next.item, slots: s, owner: next.owner}, true
}

// tenantMayRun reports whether a waiting tenant may have another slot.
func (s *Slots[T]) tenantMayRun(t *Member[*FairQueue[*itemHeap[T]]]) bool {
	if most := s.rules.MaxSlots(t.Name); most > 0 && t.Busy() >= most {
		return false
	}
	left := float64(s.free + s.reserve)
	return !s.rules.Several || float64(t.Busy()) < left*min(2, s.tenants.RelativeWeight(t))
}

// instanceMayRun returns the condition on which an instance of a tenant may have
// another slot.
func (s *Slots[T]) instanceMayRun(t *Member[*FairQueue[*itemHeap[T]]]) func(*Member[*itemHeap[T]]) bool {
	most := s.share
	if s.free <= 0 {
		most = 0
		if -s.free < s.waiting || float64(t.Busy()) < float64(s.reserve)*s.tenants.ShareOf(t) {
			most = 1
		}
	}
	return func(m *Member[*itemHeap[T]]) bool { return m.Busy() < most }
}

// SetWaiting notes whether the holder waits for something other than the processor. A
// holder that waits makes room in the reserve. Without a slot it does nothing.
func (s *Slot[T]) SetWaiting(is bool) {
	if s == nil {
		return
	}
	s.slots.mu.Lock()
	was := s.waiting
	s.waiting = is
	switch {
	case is && !was:
		s.slots.waiting++
	case was && !is:
		s.slots.waiting--
	}
	s.slots.mu.Unlock()
	if is && !was {
		s.slots.signal()
	}
}

// Release gives the slot back.
func (s *Slot[T]) Release() {
	s.SetWaiting(false)
	all := s.slots
	all.mu.Lock()
	all.free++
	tenant := all.tenants.Member(s.owner.Tenant)
	tenant.Item.Settle(tenant.Item.Member(s.owner.Instance), 0)
	all.tenants.Settle(tenant, 0)
	all.mu.Unlock()
	all.signal()
}

// itemHeap orders items by tier, then by the order in which they came.
type itemHeap[T any] []queued[T]

func (h itemHeap[T]) Len() int      { return len(h) }
func (h itemHeap[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *itemHeap[T]) Push(x any)   { *h = append(*h, x.(queued[T])) }
func (h itemHeap[T]) Less(i, j int) bool {
	if h[i].tier != h[j].tier {
		return h[i].tier < h[j].tier
	}
	return h[i].seq < h[j].seq
}

func (h *itemHeap[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = queued[T]{}
	*h = old[:len(old)-1]
	return last
}
