package swarm

import (
	"context"
	"time"

	"skep/spec/mail"
)

// erasing is how far the erasure of a tenant has come.
type erasing int

const (
	// stopping tenants take no posts, and their tasks are being ended.
	stopping erasing = 1 + iota
	// vanishing tenants have no tasks any more that anybody could load.
	vanishing
)

// quietEvery is how often the tasks of a tenant that is to be erased are looked
// at until none of them runs.
const quietEvery = 10 * time.Millisecond

// Erase removes all that is kept of a tenant and destroys its keys, while others
// go on. Its posts are refused with [ErrErasing] meanwhile, its running tasks are
// cancelled and told so; then it begins anew. A tenant that keeps nothing is
// [ErrNotFound]. The end of ctx counts until its tasks have stopped: what is
// removed from then on is removed to the end.
func (r *Runtime) Erase(ctx context.Context, tenant string) error {
	kept, err := r.store.Keeps(ctx, tenant)
	if err != nil {
		return err
	}
	if !kept {
		return refuse(ErrNotFound, "tenant '%s' keeps nothing", tenant)
	}
	if !r.mark(tenant, 0, stopping) {
		return refuse(ErrConflict, "tenant '%s' is being erased already", tenant)
	}
	defer r.unmark(tenant)
	if err := r.quiet(ctx, tenant); err != nil {
		return err
	}
	r.mark(tenant, stopping, vanishing)
	if err := r.store.Erase(context.WithoutCancel(ctx), tenant); err != nil {
		return err
	}
	r.forget(tenant)
	return nil
}

// mark takes the erasure of a tenant from one point to the next, unless it is
// somewhere else.
func (r *Runtime) mark(tenant string, from, to erasing) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.erasing[tenant] != from {
		return false
	}
	if r.erasing == nil {
		r.erasing = map[string]erasing{}
	}
	r.erasing[tenant] = to
	return true
}

func (r *Runtime) unmark(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.erasing, tenant)
}

// lives says whether a tenant can be written for, or with a point of an erasure
// whether that has not been reached. The caller holds mu.
func (r *Runtime) lives(tenant string, until erasing) error {
	if at := r.erasing[tenant]; at != 0 && at >= until {
		return refuse(ErrErasing, "tenant '%s' is being erased; try again when that is done", tenant)
	}
	return nil
}

// quiet cancels the running tasks of a tenant and waits until nothing of it goes
// on. Posts that were on their way when it began may start one more.
func (r *Runtime) quiet(ctx context.Context, tenant string) error {
	tick := time.NewTicker(quietEvery)
	defer tick.Stop()
	for {
		keys, busy := r.under(tenant)
		for _, key := range keys {
			runs, err := r.cancelErased(ctx, key)
			if err != nil {
				return err
			}
			busy = busy || runs
		}
		if !busy {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.stopped:
			return ErrDraining
		}
	}
}

// under lists the tasks of a tenant that are in memory or only wait, and tells
// whether posts to it are on their way.
func (r *Runtime) under(tenant string) (keys []TaskKey, posts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.tasks {
		if key.Tenant == tenant {
			keys = append(keys, key)
		}
	}
	for key := range r.parked {
		if key.Tenant == tenant {
			keys = append(keys, key)
		}
	}
	for key, in := range r.instances {
		posts = posts || key.Tenant == tenant && in.posts > 0
	}
	return keys, posts
}

// cancelErased cancels a task if it runs, and reports whether turns of it still do.
func (r *Runtime) cancelErased(ctx context.Context, key TaskKey) (runs bool, err error) {
	def, ok := r.definition(key.Tenant, key.Swarm)
	if !ok {
		return false, nil // this host does not run it
	}
	t, err := r.acquire(ctx, key, def)
	if endsRun(ctx, err) {
		return false, err
	}
	if err != nil {
		r.setAside(key, err) // it can be removed nevertheless
		return false, nil
	}
	defer r.release(t)
	err = r.stop(t, func(rec Task) (State, string, string, error) {
		if rec.State != StateRunning {
			return "", "", "", errNotDue
		}
		return StateCancelled, mail.SubjectTaskCancelled, "The task was cancelled: an operator has all erased that is kept of its tenant.", nil
	})
	if err != nil && err != errNotDue {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running) > 0, nil
}

// forget lets go of what is in memory of a tenant of which the store has nothing
// any more. Whoever still holds one of its tasks holds one that does not exist.
func (r *Runtime) forget(tenant string) {
	var held []*live
	r.meters.Forget(tenant)
	r.mu.Lock()
	delete(r.days, tenant)
	for key, t := range r.tasks {
		if key.Tenant == tenant {
			held = append(held, t)
		}
	}
	for key, counted := range r.parked {
		if key.Tenant == tenant {
			delete(r.parked, key)
			r.carry(key.InstanceKey, load{-counted.running, -counted.waiting})
		}
	}
	for key := range r.damaged {
		if key.Tenant == tenant {
			delete(r.damaged, key)
		}
	}
	for key, in := range r.instances {
		if key.Tenant == tenant && in.load == (load{}) && in.posts == 0 {
			delete(r.instances, key)
			delete(r.idle, key)
		}
	}
	for key := range r.census {
		if key.tenant == tenant {
			r.census[key] = &census{at: r.now()}
		}
	}
	r.mu.Unlock()
	for _, t := range held {
		t.forget()
	}
}

// forget makes a task as it was before it was loaded.
func (t *live) forget() {
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := newLive(t.key, t.def)
	t.loaded, t.exists, t.rec = false, false, Task{}
	t.queue, t.later, t.stash, t.letters, t.queued = fresh.queue, nil, nil, nil, fresh.queued
	t.states, t.tails, t.posts = fresh.states, fresh.tails, fresh.posts
	t.notify()
}
