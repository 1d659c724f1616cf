package router

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Stats is what has become of the letters for one peer since the host started.
type Stats struct {
	Peer string
	// Outboxes are the tasks with letters for it.
	Outboxes int
	// Attempts is how often a letter was sent, Delivered how many letters it took,
	// Dead how many were given up.
	Attempts, Delivered, Dead int64
	Breaker                   BreakerState
}

// tally counts for one peer.
type tally struct {
	attempts, delivered, dead atomic.Int64
}

// Stats lists the known peers that letters were for, by name. What was counted of
// one that is not known any more is forgotten.
func (r *Router) Stats() []Stats {
	r.mu.Lock()
	list := make([]Stats, 0, len(r.lines))
	for name, l := range r.lines {
		list = append(list, Stats{
			Peer: name, Outboxes: l.outboxes(), Breaker: l.breaker.state(r.opt.Now()),
			Attempts: l.tally.attempts.Load(), Delivered: l.tally.delivered.Load(), Dead: l.tally.dead.Load(),
		})
	}
	r.mu.Unlock()
	list = slices.DeleteFunc(list, func(s Stats) bool {
		_, err := r.opt.Peers.Peer(s.Peer)
		if err != nil {
			r.forget(s.Peer)
		}
		return err != nil
	})
	slices.SortFunc(list, func(a, b Stats) int { return strings.Compare(a.Peer, b.Peer) })
	return list
}

// outboxes counts those with letters. The caller holds mu.
func (l *line) outboxes() int {
	n := len(l.known)
	for box := range l.rests.of {
		if _, ok := l.known[box]; !ok {
			n++
		}
	}
	return n
}

// forget drops a line on which nothing is under way.
func (r *Router) forget(peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lines[peer]; l != nil && l.outboxes() == 0 && l.active == 0 {
		delete(r.lines, peer)
	}
}
