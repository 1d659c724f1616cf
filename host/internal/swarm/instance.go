package swarm

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// instance is the load of one instance in memory. It exists while something is under
// way in the instance, and a little longer; the store has the others.
type instance struct {
	load
	// posts counts the posts that are being accepted, rows the rows they add.
	posts, rows int
	// fresh is set while the store has no task of the instance.
	fresh bool
}

// load counts running tasks and waiting rows.
type load struct{ running, waiting int }

// instanceCount counts the instances of a swarm, those in the store included.
type instanceCount struct {
	all, users int
	at         time.Time
	// made counts the instances that this host has made, and others what the other hosts had made when all was counted.
	made, others int
}

// maxIdle is the number of instances without load that stay in memory.
const maxIdle = 1024

// recountInterval is the time after which the instances of a swarm at its limit are
// counted again: the store may have pruned some.
const recountInterval = time.Minute

// reserveInstance takes an instance into memory for a post with a number of rows. It is
// refused when the instance would exceed the limit on instances, or its queue the limit
// on waiting messages.
func (r *Runtime) reserveInstance(ctx context.Context, t *activeTask, rows int) error {
	key, limits := t.key.InstanceKey, t.def.Limits
	known, err := r.instanceExists(ctx, key)
	if err != nil {
		return err
	}
	most := limits.Instances
	if !known {
		if err := r.countInstances(ctx, key.swarm(), most); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkNotErasing(key.Tenant, eraseStopping); err != nil {
		return err
	}
	in, c := r.instances[key], r.instanceCounts[key.swarm()]
	waiting := r.othersLoad(key.loadName())
	if in != nil {
		waiting += in.waiting + in.rows
	}
	if (in != nil || waiting > 0) && limits.Queue > 0 && waiting+rows > limits.Queue {
		return refuseAt("[limits] queue", "%d messages are waiting in this instance, its limit; raise [limits] queue or try later", waiting)
	}
	if in == nil && !known && most > 0 && c.count(r.othersLoad(key.swarm().loadName())) >= most {
		return refuseAt("[limits] instances", "the swarm has %d instances, its limit; raise [limits] instances", most)
	}
	if in == nil {
		in = r.addInstance(key)
		if in.fresh = !known; in.fresh {
			c.add(key, 1)
			c.made++
		}
	}
	in.posts, in.rows = in.posts+1, in.rows+rows
	delete(r.idle, key)
	return nil
}

// releaseInstance undoes reserveInstance.
func (r *Runtime) releaseInstance(key InstanceKey, rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releaseInstanceLocked(key, rows)
}

// releaseInstanceLocked is releaseInstance by a holder of mu.
func (r *Runtime) releaseInstanceLocked(key InstanceKey, rows int) {
	in := r.instances[key]
	in.posts, in.rows = in.posts-1, in.rows-rows
	if in.fresh && in.posts == 0 {
		c := r.instanceCounts[key.swarm()]
		c.add(key, -1)
		c.made--
		delete(r.instances, key)
		return
	}
	r.parkInstance(key, in)
}

// addInstance adds an instance without load. The caller holds mu.
func (r *Runtime) addInstance(key InstanceKey) *instance {
	in := &instance{}
	r.instances[key] = in
	return in
}

// parkInstance marks an instance without load as idle, and drops one when too many are.
// The caller holds mu.
func (r *Runtime) parkInstance(key InstanceKey, in *instance) {
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

// addLoad adds to the load of an instance and of its tenant. The caller holds mu.
func (r *Runtime) addLoad(key InstanceKey, more load) {
	in := r.instances[key]
	if in == nil {
		in = r.addInstance(key)
	}
	in.fresh = false
	in.running, in.waiting = in.running+more.running, in.waiting+more.waiting
	if g, ok := key.peerKey(); ok {
		r.countPeerTasks(g, more.running)
	}
	r.parkInstance(key, in)
	tl := r.tenantLoad(key.Tenant)
	tl.running, tl.waiting = tl.running+more.running, tl.waiting+more.waiting
	r.dropIdleTenantLoad(key.Tenant)
}

// instanceExists reports whether an instance is in memory or in the store.
func (r *Runtime) instanceExists(ctx context.Context, key InstanceKey) (bool, error) {
	r.mu.Lock()
	_, ok := r.instances[key]
	r.mu.Unlock()
	if ok {
		return true, nil
	}
	tasks, err := r.store.Tasks(ctx, key, time.Time{}, 1)
	return len(tasks) > 0, err
}

// countInstances counts the instances of a swarm, if they were not counted, or the
// count has reached most and is old. A most of zero is never reached.
func (r *Runtime) countInstances(ctx context.Context, key swarmKey, most int) error {
	now, others := r.now(), r.othersLoad(key.loadName())
	r.mu.Lock()
	c := r.instanceCounts[key]
	done := c != nil && others >= c.others && (most <= 0 || c.count(others) < most || now.Sub(c.at) < recountInterval)
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
	c = &instanceCount{at: now, others: others}
	if before := r.instanceCounts[key]; before != nil { // another count may have ended meanwhile
		c.made = before.made
	}
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
	r.instanceCounts[key] = c
	return nil
}

// count is the number of instances when other hosts have made others.
func (c *instanceCount) count(others int) int { return c.all + max(0, others-c.others) }

// add counts n instances more.
func (c *instanceCount) add(key InstanceKey, n int) {
	c.all += n
	if strings.HasPrefix(key.Instance, "user:") {
		c.users += n
	}
}
