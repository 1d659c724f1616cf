package router

import (
	"context"
	"slices"
	"sync"
	"time"

	"skep/host/internal/fair"
)

// gate bounds the requests under way. Every peer may have one, whatever others
// do; more come out of a pool that all share. Of those that wait, the peer is
// next whose requests have taken the least time so far, so that slow peers stand
// behind quick ones. It is safe for concurrent use.
type gate struct {
	// pool bounds the requests beyond each peer's first, each those of one peer.
	pool, each int
	now        func() time.Time

	mu   sync.Mutex
	line *fair.Line[*queue]
	// peers counts those with a request under way.
	peers int
}

// queue is who waits to ask one peer, first come first.
type queue struct {
	waiting []chan struct{}
}

func newGate(pool, each int, now func() time.Time) *gate {
	return &gate{pool: pool, each: each, now: now, line: fair.New(nil, func() *queue { return &queue{} })}
}

// enter waits until a request to a peer may begin. Whoever is let in calls leave
// when it is over; leave is nil when ctx ends first.
func (g *gate) enter(ctx context.Context, peer string) (leave func()) {
	turn := make(chan struct{})
	g.mu.Lock()
	p := g.line.Party(peer)
	p.Item.waiting = append(p.Item.waiting, turn)
	g.line.Wait(p)
	g.admit()
	g.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		g.withdraw(p, turn)
		return nil
	}
	begun := g.now()
	return func() { g.leave(p, g.now().Sub(begun)) }
}

// admit lets in whoever may be. The caller holds mu.
func (g *gate) admit() {
	for p := g.line.Next(g.may); p != nil; p = g.line.Next(g.may) {
		if p.Busy() == 0 {
			g.peers++
		}
		g.line.Grant(p, 0)
		close(p.Item.waiting[0])
		if p.Item.waiting = p.Item.waiting[1:]; len(p.Item.waiting) == 0 {
			g.line.Leave(p)
		}
	}
}

func (g *gate) may(p *fair.Party[*queue]) bool {
	return p.Busy() == 0 || p.Busy() < g.each && g.line.Busy()-g.peers < g.pool
}

// leave ends a request that has taken some time.
func (g *gate) leave(p *fair.Party[*queue], took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line.Settle(p, took.Seconds())
	if p.Busy() == 0 {
		g.peers--
	}
	g.admit()
}

// withdraw takes back a wish to ask, which may have been granted meanwhile.
func (g *gate) withdraw(p *fair.Party[*queue], turn chan struct{}) {
	g.mu.Lock()
	i := slices.Index(p.Item.waiting, turn)
	if i >= 0 {
		p.Item.waiting = slices.Delete(p.Item.waiting, i, i+1)
		if len(p.Item.waiting) == 0 {
			g.line.Leave(p)
		}
	}
	g.mu.Unlock()
	if i < 0 {
		g.leave(p, 0)
	}
}
