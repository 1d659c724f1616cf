package swarm

import (
	"context"
	"slices"
	"sync"
)

// cpu hands out the tokens without which no guest computes. Instances that
// wait take turns, so that an instance with a hundred busy turns gets no more
// than one with a single turn.
type cpu struct {
	mu   sync.Mutex
	free int
	// ring holds the instances with waiters in the order of their next turn.
	ring    []InstanceKey
	waiting map[InstanceKey][]chan struct{}
}

func newCPU(tokens int) *cpu {
	return &cpu{free: tokens, waiting: map[InstanceKey][]chan struct{}{}}
}

// acquire takes a token for a turn of the instance. It returns the cause of
// ctx's end when that comes first.
func (c *cpu) acquire(ctx context.Context, key InstanceKey) error {
	c.mu.Lock()
	if c.free > 0 && len(c.ring) == 0 {
		c.free--
		c.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	if len(c.waiting[key]) == 0 {
		c.ring = append(c.ring, key)
	}
	c.waiting[key] = append(c.waiting[key], ready)
	c.mu.Unlock()

	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		c.abandon(key, ready)
		return context.Cause(ctx)
	}
}

// abandon takes a waiter off the list. A token that was handed over in the
// same moment goes on to the next.
func (c *cpu) abandon(key InstanceKey, ready chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[key]
	i := slices.Index(list, ready)
	if i < 0 {
		c.handOver()
		return
	}
	c.setWaiting(key, slices.Delete(list, i, i+1))
}

func (c *cpu) setWaiting(key InstanceKey, list []chan struct{}) {
	if len(list) > 0 {
		c.waiting[key] = list
		return
	}
	delete(c.waiting, key)
	if i := slices.Index(c.ring, key); i >= 0 {
		c.ring = slices.Delete(c.ring, i, i+1)
	}
}

// release gives a token back.
func (c *cpu) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handOver()
}

// contended reports whether giving the token back would help anybody.
func (c *cpu) contended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ring) > 0
}

// handOver passes a token to the next instance in the ring, or keeps it free.
// The caller holds mu.
func (c *cpu) handOver() {
	if len(c.ring) == 0 {
		c.free++
		return
	}
	key := c.ring[0]
	list := c.waiting[key]
	close(list[0])
	c.ring = c.ring[1:]
	if len(list) > 1 {
		c.waiting[key] = list[1:]
		c.ring = append(c.ring, key)
		return
	}
	delete(c.waiting, key)
}

// Token is one turn's claim on the processor.
type Token struct {
	cpu *cpu
	key InstanceKey
}

// Acquire waits for the right to compute; Release gives it back. Calls
// alternate, beginning with Acquire.
func (t Token) Acquire(ctx context.Context) error { return t.cpu.acquire(ctx, t.key) }

// Release gives the token back, for instance while the turn waits.
func (t Token) Release() { t.cpu.release() }
