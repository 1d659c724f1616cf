package swarm

import "container/heap"

// fair shares something among parties in proportion to their weights: next is
// who has had least of it. What a party has had is measured on a common clock,
// which stands at what the newest grant began with, so that nobody saves up
// while he asks for nothing, and nobody who comes and goes is forgiven what he
// has had (start-time fair queueing). It is not safe for concurrent use.
type fair[T any] struct {
	clock  float64
	top    float64 // the most that any party has had
	seq    uint64
	busy   int
	active float64 // the weights of those that wait or have something
	some   int     // how many those are
	by     map[string]*party[T]
	line   partyHeap[T]
	sweep  int // how many parties there may be before those at rest are looked for
	weight func(name string) float64
	item   func() T
}

// party is one of those who share.
type party[T any] struct {
	name   string
	weight float64
	// had is what the party has had by its weight, on the common clock.
	had float64
	// seq says since when it waits, place where it lies in the line; -1 when it
	// does not wait.
	seq   uint64
	place int
	// busy counts grants that are not given back.
	busy int
	item T
}

// minSweep keeps few parties from being looked through all the time.
const minSweep = 64

// newFair returns a fair of which all parties have the weight that weight says,
// 1 when it is nil, and an item that item makes.
func newFair[T any](weight func(string) float64, item func() T) *fair[T] {
	if weight == nil {
		weight = func(string) float64 { return 1 }
	}
	return &fair[T]{by: map[string]*party[T]{}, sweep: minSweep, weight: weight, item: item}
}

// party returns the one of that name, new or not.
func (f *fair[T]) party(name string) *party[T] {
	p := f.by[name]
	if p == nil {
		p = &party[T]{name: name, weight: f.weight(name), had: f.clock, place: -1, item: f.item()}
		f.by[name] = p
	}
	return p
}

// wait puts a party into the line. One that has had less than the clock shows
// begins where the clock is.
func (f *fair[T]) wait(p *party[T]) {
	if p.place >= 0 {
		return
	}
	defer f.weigh(p, p.active())
	f.seq++
	p.had, p.seq = max(p.had, f.clock), f.seq
	heap.Push(&f.line, p)
}

func (p *party[T]) active() bool { return p.busy > 0 || p.place >= 0 }

// weigh keeps the sum of the active, after a party was active or not.
func (f *fair[T]) weigh(p *party[T], was bool) {
	switch is := p.active(); {
	case is && !was:
		f.active, f.some = f.active+p.weight, f.some+1
	case was && !is:
		f.active, f.some = f.active-p.weight, f.some-1
	}
}

// part is a party's weight as a multiple of what the active have on average.
func (f *fair[T]) part(p *party[T]) float64 {
	return p.weight * float64(f.some) / f.active
}

// leave takes a party out of the line.
func (f *fair[T]) leave(p *party[T]) {
	was := p.active()
	if p.place >= 0 {
		heap.Remove(&f.line, p.place)
	}
	f.weigh(p, was)
	f.rest()
}

// next returns who is next of those that may, nil when there is nobody. Who may
// not is looked at and stays in the line.
func (f *fair[T]) next(may func(*party[T]) bool) (found *party[T]) {
	var passed []*party[T]
	for found == nil && len(f.line) > 0 {
		p := f.line[0]
		if may(p) {
			found = p
			break
		}
		passed = append(passed, heap.Pop(&f.line).(*party[T]))
	}
	for _, p := range passed {
		heap.Push(&f.line, p)
	}
	return found
}

// grant charges a party what it is about to have.
func (f *fair[T]) grant(p *party[T], cost float64) {
	defer f.weigh(p, p.active())
	p.had = max(p.had, f.clock)
	f.clock = p.had
	p.busy, f.busy = p.busy+1, f.busy+1
	f.charge(p, cost)
}

// settle ends a grant; cost is what it has taken more than was charged.
func (f *fair[T]) settle(p *party[T], cost float64) {
	was := p.active()
	p.busy, f.busy = p.busy-1, f.busy-1
	f.weigh(p, was)
	f.charge(p, cost)
	f.rest()
}

func (f *fair[T]) charge(p *party[T], cost float64) {
	p.had += cost / p.weight
	f.top = max(f.top, p.had)
	if p.place >= 0 {
		heap.Fix(&f.line, p.place)
	}
}

// rest forgets parties that neither wait nor have anything, as soon as the
// clock has caught up with them.
func (f *fair[T]) rest() {
	if len(f.line) == 0 && f.busy == 0 {
		f.clock = f.top // nobody is left to compare with
	}
	if len(f.by) <= f.sweep {
		return
	}
	for name, p := range f.by {
		if p.busy == 0 && p.place < 0 && p.had <= f.clock {
			delete(f.by, name)
		}
	}
	f.sweep = max(minSweep, 2*len(f.by))
}

type partyHeap[T any] []*party[T]

func (h partyHeap[T]) Len() int { return len(h) }

func (h partyHeap[T]) Less(i, j int) bool {
	if h[i].had != h[j].had {
		return h[i].had < h[j].had
	}
	return h[i].seq < h[j].seq
}

func (h partyHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *partyHeap[T]) Push(x any) {
	p := x.(*party[T])
	p.place = len(*h)
	*h = append(*h, p)
}

func (h *partyHeap[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	last.place = -1
	return last
}
