package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"
)

// CPU hands out the tokens without which no guest computes. Tenants share them by
// weight, and the instances of a tenant equally, by the time for which they hold them:
// a tenant with a hundred busy turns gets no more than a tenant with one. It is safe
// for concurrent use.
//
// A tenant that holds all tokens but one gets the last only while no other tenant has
// computed for the time keepFor. The operating system gives a core that a guest computes on
// to another thread after up to 4 ms; a core without a guest serves the other tenants'
// requests, writes and turns at once.
type CPU struct {
	now  func() time.Time
	size int

	mu      sync.Mutex
	free    int
	tenants *FairQueue[*FairQueue[*computing]]
	// lastUses are of the two tenants that gave a token back last, the later one first.
	lastUses [2]use
}

// use is when a tenant gave a token back.
type use struct {
	tenant string
	at     time.Time
}

// keepFor is for how long after its last use one token is kept for a tenant.
const keepFor = 50 * time.Millisecond

// computing is an instance's use of the processor.
type computing struct {
	// waiting are closed one by one, when the instance gets a token.
	waiting []chan struct{}
	held    int
	// since is the time up to which used is known.
	since time.Time
	used  time.Duration
}

// slice is the cost that a grant is charged with until its duration is known: about
// how long a turn keeps a token while others wait.
const slice = time.Millisecond

// NewCPU returns as many tokens as given.
func NewCPU(tokens int, now func() time.Time, weight func(tenant string) float64) *CPU {
	instances := func() *FairQueue[*computing] {
		return NewFairQueue(nil, func() *computing { return &computing{} })
	}
	return &CPU{now: now, size: tokens, free: tokens, tenants: NewFairQueue(weight, instances)}
}

// members are an instance and its tenant in their queues.
type members struct {
	tenant   *Member[*FairQueue[*computing]]
	instance *Member[*computing]
}

func (c *CPU) members(owner Owner) members {
	t := c.tenants.Member(owner.Tenant)
	return members{t, t.Item.Member(owner.Instance)}
}

// Acquire waits for a token. It returns the cause of ctx's end when that comes first.
func (c *CPU) Acquire(ctx context.Context, owner Owner) error {
	granted := c.request(owner)
	if granted == nil {
		return nil
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		c.abandon(owner, granted)
		return context.Cause(ctx)
	}
}

// request takes a token and returns nil, or returns a channel that is closed when the
// owner is given one.
func (c *CPU) request(owner Owner) (granted chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members(owner)
	if c.free > 0 && c.mayHold(m.tenant) {
		c.free--
		c.grant(m)
		return nil
	}
	granted = make(chan struct{})
	list := &m.instance.Item.waiting
	*list = append(*list, granted)
	m.tenant.Item.Enqueue(m.instance)
	c.tenants.Enqueue(m.tenant)
	return granted
}

// abandon withdraws a request. A token that was granted in the same moment goes on to
// the next.
func (c *CPU) abandon(owner Owner, granted chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members(owner)
	list := m.instance.Item.waiting
	i := slices.Index(list, granted)
	if i < 0 {
		c.giveBack(m)
		return
	}
	m.instance.Item.waiting = slices.Delete(list, i, i+1)
	c.dequeueIdle(m)
}

// dequeueIdle takes members without requests out of their queues.
func (c *CPU) dequeueIdle(m members) {
	if len(m.instance.Item.waiting) == 0 {
		m.tenant.Item.Dequeue(m.instance)
	}
	if m.tenant.Item.Waiting() == 0 {
		c.tenants.Dequeue(m.tenant)
	}
}

// Release gives a token back.
func (c *CPU) Release(owner Owner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack(c.members(owner))
}

func (c *CPU) grant(m members) {
	m.instance.Item.updateUsed(c.now())
	m.instance.Item.held++
	m.tenant.Item.Grant(m.instance, float64(slice))
	c.tenants.Grant(m.tenant, float64(slice))
}

// giveBack settles the time for which a token was held, and passes the token on or
// keeps it free.
func (c *CPU) giveBack(m members) {
	u := m.instance.Item
	u.updateUsed(c.now())
	more := float64(u.used - slice)
	u.held, u.used = u.held-1, 0
	m.tenant.Item.Settle(m.instance, more)
	c.tenants.Settle(m.tenant, more)

	c.free++
	c.noteUse(m.tenant.Name, u.since)
	for c.free > 0 {
		next := c.tenants.Next(c.mayHold)
		if next == nil {
			return
		}
		m := members{next, next.Item.Next(Any)}
		list := m.instance.Item.waiting
		close(list[0])
		m.instance.Item.waiting = list[1:]
		c.free--
		c.grant(m)
		c.dequeueIdle(m)
	}
}

// mayHold reports whether a tenant may have a free token. Where other tenants wait, their
// shares decide. A token is withheld only from a tenant that holds another one, whose
// release grants it in time.
func (c *CPU) mayHold(t *Member[*FairQueue[*computing]]) bool {
	last := c.size > 1 && c.free == 1 && t.Busy() == c.size-1
	othersWait := c.tenants.Waiting() > 1 || c.tenants.Waiting() == 1 && t.Item.Waiting() == 0
	return !last || othersWait || !c.otherUsed(t.Name)
}

// noteUse notes that a tenant has computed until now.
func (c *CPU) noteUse(tenant string, now time.Time) {
	if c.lastUses[0].tenant != tenant {
		c.lastUses[1] = c.lastUses[0]
	}
	c.lastUses[0] = use{tenant, now}
}

// otherUsed reports whether a tenant other than this one has computed a moment ago.
func (c *CPU) otherUsed(tenant string) bool {
	other := c.lastUses[0]
	if other.tenant == tenant {
		other = c.lastUses[1]
	}
	return !other.at.IsZero() && c.now().Sub(other.at) < keepFor
}

// updateUsed adds the time since the last update, once for each token held.
func (u *computing) updateUsed(now time.Time) {
	u.used += time.Duration(u.held) * max(0, now.Sub(u.since))
	u.since = now
}
