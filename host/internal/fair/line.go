// Package fair owns how something scarce is shared by weight: who of those that
// wait is next. It must not know what is shared.
package fair

import "container/heap"

// Line shares something among parties in proportion to their weights: next is
// who has had least of it. What a party has had is measured on a common clock,
// which stands at what the newest grant began with, so that nobody saves up
// while he asks for nothing, and nobody who comes and goes is forgiven what he
// has had (start-time fair queueing). It is not safe for concurrent use.
type Line[T any] struct {
	clock  float64
	top    float64 // the most that any party has had
	seq    uint64
	busy   int
	active float64 // the weights of those that wait or have something
	some   int     // how many those are
	by     map[string]*Party[T]
	line   parties[T]
	sweep  int // how many parties there may be before those at rest are looked for
	weight func(name string) float64
	item   func() T
}

// Party is one of those who share.
type Party[T any] struct {
	Name string
	Item T

	weight float64
	// had is what the party has had by its weight, on the common clock.
	had float64
	// seq says since when it waits, place where it lies in the line; -1 when it
	// does not wait.
	seq   uint64
	place int
	// busy counts grants that are not given back.
	busy int
}

// minSweep keeps few parties from being looked through all the time.
const minSweep = 64

// New returns a line of which all parties have the weight that weight says, 1
// when it is nil, and an item that item makes. A party at rest is forgotten
// sooner or later, and its item with it.
func New[T any](weight func(name string) float64, item func() T) *Line[T] {
	if weight == nil {
		weight = func(string) float64 { return 1 }
	}
	return &Line[T]{by: map[string]*Party[T]{}, sweep: minSweep, weight: weight, item: item}
}

// Party returns the one of that name, new or not.
func (l *Line[T]) Party(name string) *Party[T] {
	p := l.by[name]
	if p == nil {
		p = &Party[T]{Name: name, Item: l.item(), weight: l.weight(name), had: l.clock, place: -1}
		l.by[name] = p
	}
	return p
}

// Waiting is how many parties wait.
func (l *Line[T]) Waiting() int { return len(l.line) }

// Busy is how many grants are not settled.
func (l *Line[T]) Busy() int { return l.busy }

// Busy is how many of the party's grants are not settled.
func (p *Party[T]) Busy() int { return p.busy }

// Wait puts a party into the line. One that has had less than the clock shows
// begins where the clock is.
func (l *Line[T]) Wait(p *Party[T]) {
	if p.place >= 0 {
		return
	}
	defer l.weigh(p, p.active())
	l.seq++
	p.had, p.seq = max(p.had, l.clock), l.seq
	heap.Push(&l.line, p)
}

func (p *Party[T]) active() bool { return p.busy > 0 || p.place >= 0 }

// weigh keeps the sum of the active, after a party was active or not.
func (l *Line[T]) weigh(p *Party[T], was bool) {
	switch is := p.active(); {
	case is && !was:
		l.active, l.some = l.active+p.weight, l.some+1
	case was && !is:
		l.active, l.some = l.active-p.weight, l.some-1
	}
}

// Share is what part of all an active party is to have.
func (l *Line[T]) Share(p *Party[T]) float64 { return p.weight / l.active }

// Part is a party's weight as a multiple of what the active have on average.
func (l *Line[T]) Part(p *Party[T]) float64 { return l.Share(p) * float64(l.some) }

// Leave takes a party out of the line.
func (l *Line[T]) Leave(p *Party[T]) {
	was := p.active()
	if p.place >= 0 {
		heap.Remove(&l.line, p.place)
	}
	l.weigh(p, was)
	l.rest()
}

// Anyone is the condition of [Line.Next] that everybody meets.
func Anyone[T any](*Party[T]) bool { return true }

// Next returns who is next of those that may, nil when there is nobody. Who may
// not is looked at and stays in the line, as does who is returned.
func (l *Line[T]) Next(may func(*Party[T]) bool) (found *Party[T]) {
	var passed []*Party[T]
	for found == nil && len(l.line) > 0 {
		p := l.line[0]
		if may(p) {
			found = p
			break
		}
		passed = append(passed, heap.Pop(&l.line).(*Party[T]))
	}
	for _, p := range passed {
		heap.Push(&l.line, p)
	}
	return found
}

// Grant charges a party what it is about to have.
func (l *Line[T]) Grant(p *Party[T], cost float64) {
	defer l.weigh(p, p.active())
	p.had = max(p.had, l.clock)
	l.clock = p.had
	p.busy, l.busy = p.busy+1, l.busy+1
	l.charge(p, cost)
}

// Settle ends a grant; cost is what it has taken more than was charged.
func (l *Line[T]) Settle(p *Party[T], cost float64) {
	was := p.active()
	p.busy, l.busy = p.busy-1, l.busy-1
	l.weigh(p, was)
	l.charge(p, cost)
	l.rest()
}

func (l *Line[T]) charge(p *Party[T], cost float64) {
	p.had += cost / p.weight
	l.top = max(l.top, p.had)
	if p.place >= 0 {
		heap.Fix(&l.line, p.place)
	}
}

// rest forgets parties that neither wait nor have anything, as soon as the
// clock has caught up with them.
func (l *Line[T]) rest() {
	if len(l.line) == 0 && l.busy == 0 {
		l.clock = l.top // nobody is left to compare with
	}
	if len(l.by) <= l.sweep {
		return
	}
	for name, p := range l.by {
		if !p.active() && p.had <= l.clock {
			delete(l.by, name)
		}
	}
	l.sweep = max(minSweep, 2*len(l.by))
}

// parties is a heap of those that wait.
type parties[T any] []*Party[T]

func (h parties[T]) Len() int { return len(h) }

func (h parties[T]) Less(i, j int) bool {
	if h[i].had != h[j].had {
		return h[i].had < h[j].had
	}
	return h[i].seq < h[j].seq
}

func (h parties[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *parties[T]) Push(x any) {
	p := x.(*Party[T])
	p.place = len(*h)
	*h = append(*h, p)
}

func (h *parties[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	last.place = -1
	return last
}
