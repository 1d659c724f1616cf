package router

import (
	"context"
	"slices"
	"sync"
	"time"

	"skep/host/internal/swarm/scheduler"
)

// requestLimiter bounds the requests in progress. Every peer may always have one;
// more come from a shared pool. Of the waiting peers, the one whose requests have
// taken the least time so far is next, so that slow peers do not delay quick
// ones. It is safe for concurrent use.
type requestLimiter struct {
	// pool bounds the requests beyond the first of each peer, perPeer all
	// requests of one peer.
	pool, perPeer int
	now           func() time.Time

	mu    sync.Mutex
	queue *scheduler.FairQueue[*peerWaiters]
	// peers counts peers with a request in progress.
	peers int
}

// peerWaiters are the waiting requests of one peer, first in first out.
type peerWaiters struct {
	waiting []chan struct{}
}

func newRequestLimiter(pool, each int, now func() time.Time) *requestLimiter {
	return &requestLimiter{pool: pool, perPeer: each, now: now, queue: scheduler.NewFairQueue(nil, func() *peerWaiters { return &peerWaiters{} })}
}

// acquire waits until a request to a peer may begin. The caller calls leave at
// its end; leave is nil when ctx ends first.
func (g *requestLimiter) acquire(ctx context.Context, peer string) (leave func()) {
	turn := make(chan struct{})
	g.mu.Lock()
	p := g.queue.Member(peer)
	p.Item.waiting = append(p.Item.waiting, turn)
	g.queue.Enqueue(p)
	g.admitWaiting()
	g.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		g.cancelWait(p, turn)
		return nil
	}
	begun := g.now()
	return func() { g.release(p, g.now().Sub(begun)) }
}

// admitWaiting admits waiting requests within the limits. The caller holds mu.
func (g *requestLimiter) admitWaiting() {
	for p := g.queue.Next(g.mayAdmit); p != nil; p = g.queue.Next(g.mayAdmit) {
		if p.Busy() == 0 {
			g.peers++
		}
		g.queue.Grant(p, 0)
		close(p.Item.waiting[0])
		if p.Item.waiting = p.Item.waiting[1:]; len(p.Item.waiting) == 0 {
			g.queue.Dequeue(p)
		}
	}
}

func (g *requestLimiter) mayAdmit(p *scheduler.Member[*peerWaiters]) bool {
	return p.Busy() == 0 || p.Busy() < g.perPeer && g.queue.Busy()-g.peers < g.pool
}

// release ends a request that took some time.
func (g *requestLimiter) release(p *scheduler.Member[*peerWaiters], took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.Settle(p, took.Seconds())
	if p.Busy() == 0 {
		g.peers--
	}
	g.admitWaiting()
}

// cancelWait removes a waiting request, or ends it if it was admitted meanwhile.
func (g *requestLimiter) cancelWait(p *scheduler.Member[*peerWaiters], turn chan struct{}) {
	g.mu.Lock()
	i := slices.Index(p.Item.waiting, turn)
	if i >= 0 {
		p.Item.waiting = slices.Delete(p.Item.waiting, i, i+1)
		if len(p.Item.waiting) == 0 {
			g.queue.Dequeue(p)
		}
	}
	g.mu.Unlock()
	if i < 0 {
		g.release(p, 0)
	}
}
