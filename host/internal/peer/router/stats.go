package router

import (
	"slices"
	"strings"
	"sync/atomic"

	"skep/host/internal/swarm"
)

// Stats are the deliveries to one peer since the host started.
type Stats struct {
	Peer string
	// Outboxes counts tasks with messages for the peer.
	Outboxes int
	// Attempts counts requests, Delivered accepted messages, Dead messages that
	// were given up.
	Attempts, Delivered, Dead int64
	Breaker                   BreakerState
}

// counters are the counters of one peer.
type counters struct {
	attempts, delivered, dead atomic.Int64
}

// Stats lists the known peers that had mail, by name. It forgets the counters of
// unknown peers.
func (r *Router) Stats() []Stats {
	r.mu.Lock()
	list := make([]Stats, 0, len(r.queues))
	for name, l := range r.queues {
		list = append(list, Stats{
			Peer: name, Outboxes: l.outboxes(), Breaker: l.breaker.state(r.opt.Now()),
			Attempts: l.counters.attempts.Load(), Delivered: l.counters.delivered.Load(), Dead: l.counters.dead.Load(),
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

// outboxes counts outboxes with messages. The caller holds mu.
func (l *peerQueue) outboxes() int {
	boxes := map[swarm.OutboxKey]bool{}
	for n := range l.pending {
		boxes[n.OutboxKey] = true
	}
	for n := range l.deferred.messages {
		boxes[n.OutboxKey] = true
	}
	return len(boxes)
}

// forget drops a queue without work.
func (r *Router) forget(peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.queues[peer]; l != nil && l.outboxes() == 0 && l.active == 0 {
		delete(r.queues, peer)
	}
}
