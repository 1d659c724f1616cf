package quarantine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Agent names an agent of a tenant's swarm.
type Agent struct {
	Tenant string `json:"tenant"`
	Swarm  string `json:"swarm"`
	Name   string `json:"agent"`
}

// Confined is an agent in quarantine.
type Confined struct {
	Agent
	// Module is the digest of what it ran on, empty where that is not known.
	Module string    `json:"module,omitempty"`
	Since  time.Time `json:"since"`
	Why    string    `json:"why"`
}

// ErrErasing refuses an agent of a tenant that is being erased.
var ErrErasing = errors.New("the tenant is being erased")

// Store keeps the agents in quarantine. Its writes are durable on return. One that fails may
// have happened nevertheless: the answer of a server can be lost.
type Store interface {
	// Confined lists them in the order they came.
	Confined(ctx context.Context) ([]Confined, error)
	// ConfineAgent adds an agent; one that is there stays as it is. It may return [ErrErasing].
	ConfineAgent(ctx context.Context, c Confined) error
	// ReleaseAgent removes an agent, and reports whether it was there.
	ReleaseAgent(ctx context.Context, a Agent) (ok bool, err error)
}

// Quarantine is the list of agents that must not run. It is safe for concurrent
// use.
type Quarantine struct {
	store Store

	// change is held while the store changes or is read, until list is as it has it. It
	// comes before mu.
	change sync.Mutex
	mu     sync.RWMutex
	list   []Confined
}

// Open reads the list that a store has. Agents in the file of an earlier version are moved
// into the store before.
func Open(ctx context.Context, store Store, file string) (*Quarantine, error) {
	q := &Quarantine{store: store}
	if err := moveFile(ctx, file, store); err != nil {
		return nil, err
	}
	return q, q.Refresh(ctx)
}

// Refresh reads the list anew: hosts that share a store change it, too.
func (q *Quarantine) Refresh(ctx context.Context) error {
	q.change.Lock()
	defer q.change.Unlock()
	return q.readStore(ctx)
}

// readStore makes the store's list the one in force. The caller holds change.
func (q *Quarantine) readStore(ctx context.Context) error {
	list, err := q.store.Confined(ctx)
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	q.setList(list)
	return nil
}

// readTime bounds the read after a change that has failed.
const readTime = 10 * time.Second

// readAgain reads the store after a change that has failed: it may have happened nevertheless, and
// its caller may have left. It reports whether an agent is listed. The caller holds change.
func (q *Quarantine) readAgain(ctx context.Context, a Agent) (listed bool, err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer stop()
	err = q.readStore(ctx)
	_, listed = q.Reason(a)
	return listed, err
}

// DropTenant forgets the agents of a tenant that is being erased, whose store does so itself.
func (q *Quarantine) DropTenant(tenant string) {
	q.change.Lock()
	defer q.change.Unlock()
	q.setList(slices.DeleteFunc(q.Agents(), func(c Confined) bool { return c.Tenant == tenant }))
}

// Reason returns why an agent must not run; ok is false for one that may.
func (q *Quarantine) Reason(a Agent) (reason string, ok bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	i := q.find(a)
	if i < 0 {
		return "", false
	}
	return q.list[i].Why, true
}

// Agents lists who is in quarantine, in the order they came.
func (q *Quarantine) Agents() []Confined {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return slices.Clone(q.list)
}

// Confine puts an agent that runs on a module into quarantine; it is durable on
// return.
func (q *Quarantine) Confine(ctx context.Context, a Agent, module, why string, now time.Time) error {
	q.change.Lock()
	defer q.change.Unlock()
	// The store is asked also for one that is listed: another host may have released it.
	c := Confined{a, module, now.UTC(), why}
	if err := q.store.ConfineAgent(ctx, c); err != nil {
		if listed, unread := q.readAgain(ctx, a); listed && unread == nil {
			return nil
		}
		return fmt.Errorf("quarantine: %w", err)
	}
	if _, ok := q.Reason(a); !ok {
		q.setList(append(q.Agents(), c))
	}
	return nil
}

// Release takes an agent out; it is durable on return. ok is false for one that
// was not in it.
func (q *Quarantine) Release(ctx context.Context, a Agent) (ok bool, err error) {
	q.change.Lock()
	defer q.change.Unlock()
	_, listed := q.Reason(a)
	ok, err = q.store.ReleaseAgent(ctx, a)
	if err != nil {
		if still, unread := q.readAgain(ctx, a); listed && !still && unread == nil {
			return true, nil
		}
		return false, fmt.Errorf("quarantine: %w", err)
	}
	q.setList(slices.DeleteFunc(q.Agents(), func(c Confined) bool { return c.Agent == a }))
	// Another host, or a call whose answer was lost, may have taken it out of the store alone.
	return ok || listed, nil
}

func (q *Quarantine) find(a Agent) int {
	return slices.IndexFunc(q.list, func(c Confined) bool { return c.Agent == a })
}

// setList makes a list the one in force. The caller holds change.
func (q *Quarantine) setList(list []Confined) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = list
}
