package swarm

import (
	"context"
	"slices"
	"sync"
	"time"

	"skep/host/internal/fair"
)

// cpu hands out the tokens without which no guest computes. Tenants share them
// by weight, and the instances of a tenant equally, by the time for which they
// held them: a tenant with a hundred busy turns gets no more than one with a
// single turn.
type cpu struct {
	now func() time.Time

	mu      sync.Mutex
	free    int
	tenants *fair.Line[*fair.Line[*computing]]
}

// computing is what an instance holds of the processor and waits for.
type computing struct {
	waiting []chan struct{}
	held    int
	// since is when used was last brought up to date.
	since time.Time
	used  time.Duration
}

// slice is what a grant is charged with until it is known how long it took: about
// how long a turn keeps a token that others wait for.
const slice = time.Millisecond

func newCPU(tokens int, now func() time.Time, weight func(tenant string) float64) *cpu {
	instances := func() *fair.Line[*computing] {
		return fair.New(nil, func() *computing { return &computing{} })
	}
	return &cpu{now: now, free: tokens, tenants: fair.New(weight, instances)}
}

// share is an instance's place among those who share the processor.
type share struct {
	tenant   *fair.Party[*fair.Line[*computing]]
	instance *fair.Party[*computing]
}

func (c *cpu) share(key InstanceKey) share {
	t := c.tenants.Party(key.Tenant)
	return share{t, t.Item.Party(key.name())}
}

// acquire takes a token for a turn of the instance. It returns the cause of
// ctx's end when that comes first.
func (c *cpu) acquire(ctx context.Context, key InstanceKey) error {
	ready := c.ask(key)
	if ready == nil {
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		c.abandon(key, ready)
		return context.Cause(ctx)
	}
}

// ask takes a token, or returns what is closed when there is one.
func (c *cpu) ask(key InstanceKey) (ready chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.share(key)
	if c.free > 0 {
		c.free--
		c.grant(s)
		return nil
	}
	ready = make(chan struct{})
	list := &s.instance.Item.waiting
	*list = append(*list, ready)
	s.tenant.Item.Wait(s.instance)
	c.tenants.Wait(s.tenant)
	return ready
}

// abandon takes a waiter off the list. A token that was handed over in the
// same moment goes on to the next.
func (c *cpu) abandon(key InstanceKey, ready chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.share(key)
	list := s.instance.Item.waiting
	i := slices.Index(list, ready)
	if i < 0 {
		c.giveBack(s)
		return
	}
	s.instance.Item.waiting = slices.Delete(list, i, i+1)
	c.line(s)
}

// line takes out of the lines who waits no more.
func (c *cpu) line(s share) {
	if len(s.instance.Item.waiting) == 0 {
		s.tenant.Item.Leave(s.instance)
	}
	if s.tenant.Item.Waiting() == 0 {
		c.tenants.Leave(s.tenant)
	}
}

// release gives a token of the instance back.
func (c *cpu) release(key InstanceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack(c.share(key))
}

// contended reports whether giving the token back would help anybody.
func (c *cpu) contended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tenants.Waiting() > 0
}

func (c *cpu) grant(s share) {
	s.instance.Item.count(c.now())
	s.instance.Item.held++
	s.tenant.Item.Grant(s.instance, float64(slice))
	c.tenants.Grant(s.tenant, float64(slice))
}

// giveBack settles what a token was used for, and passes it on or keeps it free.
func (c *cpu) giveBack(s share) {
	u := s.instance.Item
	u.count(c.now())
	more := float64(u.used - slice)
	u.held, u.used = u.held-1, 0
	s.tenant.Item.Settle(s.instance, more)
	c.tenants.Settle(s.tenant, more)

	next := c.tenants.Next(fair.Anyone)
	if next == nil {
		c.free++
		return
	}
	s = share{next, next.Item.Next(fair.Anyone)}
	list := s.instance.Item.waiting
	close(list[0])
	s.instance.Item.waiting = list[1:]
	c.grant(s)
	c.line(s)
}

// count brings the time up to date for which the instance held tokens.
func (u *computing) count(now time.Time) {
	u.used += time.Duration(u.held) * max(0, now.Sub(u.since))
	u.since = now
}

// Token is one turn's claim on the processor.
type Token struct {
	cpu   *cpu
	key   InstanceKey
	watch *watch
	seat  *seat
}

// Acquire waits for the right to compute; Release gives it back. Calls
// alternate, beginning with Acquire.
func (t Token) Acquire(ctx context.Context) error {
	t.seat.wait(false)
	err := t.cpu.acquire(ctx, t.key)
	if err == nil {
		t.watch.computing()
	}
	return err
}

// Release gives the token back, for instance while the turn waits.
func (t Token) Release() {
	t.watch.waiting()
	t.cpu.release(t.key)
	t.seat.wait(true)
}
