package swarm

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// instance is what the runtime holds of one in memory: only as long as something
// goes on in it, and a little longer. The store has the others.
type instance struct {
	load
	// posts counts those that are being accepted, rows what they bring.
	posts, rows int
	// fresh says that the store has no task of it yet.
	fresh bool
}

// load is what an instance has under way.
type load struct{ running, waiting int }

// census counts the instances of a swarm, those in the store included.
type census struct {
	all, users int
	at         time.Time
}

// maxIdle is how many instances in which nothing goes on are remembered.
const maxIdle = 1024

// recount is how often the instances of a swarm that has reached its limit are
// counted anew: the store may have forgotten some.
const recount = time.Minute

// room takes an instance into memory for a post of so many rows. It is refused when the instance
// would be one too many, or has too many messages waiting.
func (r *Runtime) room(ctx context.Context, t *live, rows int) error {
	key, limits := t.key.InstanceKey, t.def.Limits
	known, err := r.knows(ctx, key)
	if err != nil {
		return err
	}
	most := limits.Instances
	if !known {
		if err := r.count(ctx, key.swarm(), most); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.lives(key.Tenant, stopping); err != nil {
		return err
	}
	in, c := r.instances[key], r.census[key.swarm()]
	if in != nil && limits.Queue > 0 && in.waiting+in.rows+rows > limits.Queue {
		return refuse(ErrLimit, "%d messages are waiting in this instance, its limit; raise [limits] queue or try later", in.waiting+in.rows)
	}
	if in == nil && !known && most > 0 && c.all >= most {
		return refuse(ErrLimit, "the swarm has %d instances, its limit; raise [limits] instances", most)
	}
	if in == nil {
		in = r.wakeUp(key)
		if in.fresh = !known; in.fresh {
			c.add(key, 1)
		}
	}
	in.posts, in.rows = in.posts+1, in.rows+rows
	delete(r.idle, key)
	return nil
}

// leave ends what room began.
func (r *Runtime) leave(key InstanceKey, rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.instances[key]
	in.posts, in.rows = in.posts-1, in.rows-rows
	if in.fresh && in.posts == 0 {
		r.census[key.swarm()].add(key, -1)
		delete(r.instances, key)
		return
	}
	r.park(key, in)
}

// wakeUp makes the entry of an instance. The caller holds mu.
func (r *Runtime) wakeUp(key InstanceKey) *instance {
	in := &instance{}
	r.instances[key] = in
	return in
}

// park lets go of an instance in which nothing goes on. The caller holds mu.
func (r *Runtime) park(key InstanceKey, in *instance) {
	if in.load != (load{}) || in.posts > 0 {
		delete(r.idle, key)
		return
	}
	r.idle[key] = struct{}{}
	if len(r.idle) <= maxIdle {
		return
	}
	for other := range r.idle {
		delete(r.idle, other)
		delete(r.instances, other)
		return
	}
}

// carry adds to what an instance and its tenant have under way. The caller holds
// mu.
func (r *Runtime) carry(key InstanceKey, more load) {
	in := r.instances[key]
	if in == nil {
		in = r.wakeUp(key)
	}
	in.fresh = false
	in.running, in.waiting = in.running+more.running, in.waiting+more.waiting
	if g, ok := key.guests(); ok {
		if r.guests[g] += more.running; r.guests[g] == 0 {
			delete(r.guests, g)
		}
	}
	r.park(key, in)
	l := r.ledger(key.Tenant)
	l.running, l.waiting = l.running+more.running, l.waiting+more.waiting
	r.closeLedger(key.Tenant)
}

// knows reports whether an instance is in memory or in the store.
func (r *Runtime) knows(ctx context.Context, key InstanceKey) (bool, error) {
	r.mu.Lock()
	_, ok := r.instances[key]
	r.mu.Unlock()
	if ok {
		return true, nil
	}
	tasks, err := r.store.Tasks(ctx, key, time.Time{}, 1)
	return len(tasks) > 0, err
}

// count makes the census of a swarm, if there is none or it has reached most and
// is old. A most of zero is never reached.
func (r *Runtime) count(ctx context.Context, key swarmKey, most int) error {
	now := r.now()
	r.mu.Lock()
	c := r.census[key]
	done := c != nil && (most <= 0 || c.all < most || now.Sub(c.at) < recount)
	r.mu.Unlock()
	if done {
		return nil
	}
	found, err := r.store.Instances(ctx, key.tenant, key.name)
	if err != nil {
		return fmt.Errorf("count instances: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c = &census{at: now}
	stored := make(map[InstanceKey]bool, len(found))
	for _, k := range found {
		stored[k] = true
		c.add(k, 1)
	}
	for k := range r.instances {
		if k.swarm() == key && !stored[k] {
			c.add(k, 1)
		}
	}
	r.census[key] = c
	return nil
}

// add counts an instance.
func (c *census) add(key InstanceKey, n int) {
	c.all += n
	if strings.HasPrefix(key.Instance, "user:") {
		c.users += n
	}
}
