package swarm

import (
	"container/heap"
	"context"
	"slices"
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

// schedule decides who gets the next turn: instances take turns, and within an
// instance the highest tier comes first. At most slots turns run at once, and
// at most share of them for one instance. Beyond the slots there is a reserve
// for instances of which no turn runs, so that a few which only wait cannot
// keep all others from running.
type schedule struct {
	mu      sync.Mutex
	slots   int // free, without the reserve; negative when that is in use
	reserve int
	share   int
	seq     uint64
	ring    []InstanceKey
	queue   map[InstanceKey]*readyHeap
	running map[InstanceKey]int
	wake    chan struct{}
}

func newSchedule(slots int) *schedule {
	return &schedule{
		slots: slots, reserve: slots, share: max(1, slots/4),
		queue: map[InstanceKey]*readyHeap{}, running: map[InstanceKey]int{}, wake: make(chan struct{}, 1),
	}
}

func (s *schedule) push(t *live, agent string, tier int) {
	s.mu.Lock()
	s.seq++
	key := t.key.InstanceKey
	q := s.queue[key]
	if q == nil {
		q = &readyHeap{}
		s.queue[key] = q
		s.ring = append(s.ring, key)
	}
	heap.Push(q, ready{t, agent, tier, s.seq})
	s.mu.Unlock()
	s.poke()
}

// done gives back the slot of a claim.
func (s *schedule) done(key InstanceKey) {
	s.mu.Lock()
	s.slots++
	if s.running[key]--; s.running[key] == 0 {
		delete(s.running, key)
	}
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
	share := s.share
	if s.slots <= 0 {
		share = 1
	}
	if s.slots <= -s.reserve {
		return ready{}, false
	}
	i := slices.IndexFunc(s.ring, func(k InstanceKey) bool { return s.running[k] < share })
	if i < 0 {
		return ready{}, false
	}
	key := s.ring[i]
	s.ring = slices.Delete(s.ring, i, i+1)
	q := s.queue[key]
	r := heap.Pop(q).(ready)
	if q.Len() > 0 {
		s.ring = append(s.ring, key)
	} else {
		delete(s.queue, key)
	}
	s.slots--
	s.running[key]++
	return r, true
}
