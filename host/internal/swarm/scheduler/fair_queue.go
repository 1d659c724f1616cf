package scheduler

import "container/heap"

// FairQueue shares a resource among members in proportion to their weights: the
// member that was served least is next. Service is measured on a common clock, which
// stands at the start of the newest grant. So an absent member saves nothing up, and
// a member that comes and goes keeps what it was charged: start-time fair queueing,
// https://doi.org/10.1109/90.649569. It is not safe for concurrent use.
type FairQueue[T any] struct {
	clock        float64
	maxServed    float64 // the largest service of any member
	seq          uint64
	busy         int
	activeWeight float64 // sum of the weights of active members
	activeCount  int
	members      map[string]*Member[T]
	waiting      memberHeap[T]
	forgetAbove  int // number of members above which idle ones are looked for
	weight       func(name string) float64
	newItem      func() T
}

// Member is one of those who share.
type Member[T any] struct {
	Name string
	Item T

	weight float64
	// served is the cost of all grants divided by the weight, on the common clock.
	served float64
	// seq orders members with equal service by the time since which they wait.
	seq uint64
	// index is the place in the heap, -1 for a member that does not wait.
	index int
	// busy counts grants that are not settled.
	busy int
}

// minForgetAbove keeps a small queue from looking for idle members all the time.
const minForgetAbove = 64

// NewFairQueue returns a queue whose members have the weight that weight returns, or
// 1 when it is nil, and an item from newItem. An idle member is forgotten sooner or
// later, and its item with it.
func NewFairQueue[T any](weight func(name string) float64, newItem func() T) *FairQueue[T] {
	if weight == nil {
		weight = func(string) float64 { return 1 }
	}
	return &FairQueue[T]{members: map[string]*Member[T]{}, forgetAbove: minForgetAbove, weight: weight, newItem: newItem}
}

// Member returns the member of that name, new or not.
func (q *FairQueue[T]) Member(name string) *Member[T] {
	m := q.members[name]
	if m == nil {
		m = &Member[T]{Name: name, Item: q.newItem(), weight: q.weight(name), served: q.clock, index: -1}
		q.members[name] = m
	}
	return m
}

// Waiting is the number of members that wait.
func (q *FairQueue[T]) Waiting() int { return len(q.waiting) }

// Busy is the number of grants that are not settled.
func (q *FairQueue[T]) Busy() int { return q.busy }

// Busy is the number of the member's grants that are not settled.
func (m *Member[T]) Busy() int { return m.busy }

// Enqueue makes a member wait. Its service is at least what the clock shows.
func (q *FairQueue[T]) Enqueue(m *Member[T]) {
	if m.index >= 0 {
		return
	}
	defer q.updateActive(m, m.isActive())
	q.seq++
	m.served, m.seq = max(m.served, q.clock), q.seq
	heap.Push(&q.waiting, m)
}

func (m *Member[T]) isActive() bool { return m.busy > 0 || m.index >= 0 }

// updateActive corrects the sums over active members; was is the member's state before
// the change.
func (q *FairQueue[T]) updateActive(m *Member[T], was bool) {
	switch is := m.isActive(); {
	case is && !was:
		q.activeWeight, q.activeCount = q.activeWeight+m.weight, q.activeCount+1
	case was && !is:
		q.activeWeight, q.activeCount = q.activeWeight-m.weight, q.activeCount-1
	}
}

// ShareOf is an active member's fair part of the whole, from 0 to 1.
func (q *FairQueue[T]) ShareOf(m *Member[T]) float64 { return m.weight / q.activeWeight }

// RelativeWeight is a member's weight as a multiple of the active members' average.
func (q *FairQueue[T]) RelativeWeight(m *Member[T]) float64 {
	return q.ShareOf(m) * float64(q.activeCount)
}

// Dequeue ends a member's wait.
func (q *FairQueue[T]) Dequeue(m *Member[T]) {
	was := m.isActive()
	if m.index >= 0 {
		heap.Remove(&q.waiting, m.index)
	}
	q.updateActive(m, was)
	q.forgetIdle()
}

// Any is the condition of [FairQueue.Next] that every member meets.
func Any[T any](*Member[T]) bool { return true }

// Next returns the first waiting member that may be served, or nil. The member goes
// on waiting, and so do those that may not.
func (q *FairQueue[T]) Next(may func(*Member[T]) bool) (found *Member[T]) {
	var passed []*Member[T]
	for found == nil && len(q.waiting) > 0 {
		m := q.waiting[0]
		if may(m) {
			found = m
			break
		}
		passed = append(passed, heap.Pop(&q.waiting).(*Member[T]))
	}
	for _, m := range passed {
		heap.Push(&q.waiting, m)
	}
	return found
}

// Grant begins a grant to a member and charges its cost.
func (q *FairQueue[T]) Grant(m *Member[T], cost float64) {
	defer q.updateActive(m, m.isActive())
	m.served = max(m.served, q.clock)
	q.clock = m.served
	m.busy, q.busy = m.busy+1, q.busy+1
	q.chargeMember(m, cost)
}

// Settle ends a grant; cost is what it took beyond the cost that Grant charged.
func (q *FairQueue[T]) Settle(m *Member[T], cost float64) {
	was := m.isActive()
	m.busy, q.busy = m.busy-1, q.busy-1
	q.updateActive(m, was)
	q.chargeMember(m, cost)
	q.forgetIdle()
}

func (q *FairQueue[T]) chargeMember(m *Member[T], cost float64) {
	m.served += cost / m.weight
	q.maxServed = max(q.maxServed, m.served)
	if m.index >= 0 {
		heap.Fix(&q.waiting, m.index)
	}
}

// forgetIdle forgets members that are not active, as soon as the clock has reached
// their service.
func (q *FairQueue[T]) forgetIdle() {
	if len(q.waiting) == 0 && q.busy == 0 {
		q.clock = q.maxServed // there is no active member to compare with
	}
	if len(q.members) <= q.forgetAbove {
		return
	}
	for name, m := range q.members {
		if !m.isActive() && m.served <= q.clock {
			delete(q.members, name)
		}
	}
	q.forgetAbove = max(minForgetAbove, 2*len(q.members))
}

// memberHeap holds the members that wait.
type memberHeap[T any] []*Member[T]

func (h memberHeap[T]) Len() int { return len(h) }

func (h memberHeap[T]) Less(i, j int) bool {
	if h[i].served != h[j].served {
		return h[i].served < h[j].served
	}
	return h[i].seq < h[j].seq
}

func (h memberHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *memberHeap[T]) Push(x any) {
	m := x.(*Member[T])
	m.index = len(*h)
	*h = append(*h, m)
}

func (h *memberHeap[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	last.index = -1
	return last
}
