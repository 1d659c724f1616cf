package swarm

import (
	"context"
	"slices"
	"strings"
	"time"

	"skep/spec/mail"
)

// erasePhase is the progress of a tenant's erasure.
type erasePhase int

const (
	// In phase eraseStopping posts are refused and tasks are being ended.
	eraseStopping erasePhase = 1 + iota
	// In phase eraseRemoving the tenant's tasks cannot be loaded any more.
	eraseRemoving
)

// stopPollInterval is the time between two looks at the tasks of a tenant that is being
// erased, until none runs.
const stopPollInterval = 10 * time.Millisecond

// EraseTenant removes all data of a tenant and destroys its keys, while other tenants
// go on. Meanwhile the tenant's posts are refused with [ErrErasing] and its running
// tasks are cancelled; afterwards the tenant begins anew. A tenant without data is
// [ErrNotFound]. The end of ctx counts until the tasks have stopped; a removal that has
// begun is completed, and repeated while the store fails; a host that stops before its end is
// [ErrDraining]. last, unless it is nil, removes what others keep of the tenant: it is called
// when the store has nothing left, before the tenant begins anew, and its error is returned.
func (r *Runtime) EraseTenant(ctx context.Context, tenant string, last func() error) error {
	kept, err := r.store.HasData(ctx, tenant)
	if err != nil {
		return err
	}
	if !kept {
		return refuse(ErrNotFound, "tenant '%s' keeps nothing", tenant)
	}
	if !r.setErasePhase(tenant, 0, eraseStopping) {
		return refuse(ErrConflict, "tenant '%s' is being erased already", tenant)
	}
	defer r.clearErasePhase(tenant)
	if err := r.stopTenant(ctx, tenant); err != nil {
		return err
	}
	r.setErasePhase(tenant, eraseStopping, eraseRemoving)
	r.dropTasks(tenant)
	err = r.retryStore(r.lifetime, func() error { return r.store.Erase(context.WithoutCancel(ctx), tenant) }, "erase", "tenant", tenant)
	if err != nil {
		return err
	}
	r.ForgetTenant(tenant)
	if last == nil {
		return nil
	}
	return last()
}

// StopTenant stops this host's work for a tenant that all hosts are to erase: it is the part of
// [Runtime.EraseTenant] before the removal. After an error it may be repeated.
func (r *Runtime) StopTenant(ctx context.Context, tenant string) error {
	r.setErasePhase(tenant, 0, eraseStopping)
	if err := r.stopTenant(ctx, tenant); err != nil {
		return err
	}
	r.setErasePhase(tenant, eraseStopping, eraseRemoving)
	r.dropTasks(tenant)
	return nil
}

// ResumeTenant lets a tenant begin anew that all hosts have erased.
func (r *Runtime) ResumeTenant(tenant string) { r.clearErasePhase(tenant) }

// setErasePhase moves the erasure of a tenant from one phase to the next, unless it is
// in another one.
func (r *Runtime) setErasePhase(tenant string, from, to erasePhase) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.erasing[tenant] != from {
		return false
	}
	if r.erasing == nil {
		r.erasing = map[string]erasePhase{}
	}
	r.erasing[tenant] = to
	return true
}

func (r *Runtime) clearErasePhase(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.erasing, tenant)
}

// checkNotErasing refuses a tenant whose erasure has reached a phase. The caller holds
// mu.
func (r *Runtime) checkNotErasing(tenant string, until erasePhase) error {
	if at := r.erasing[tenant]; at != 0 && at >= until {
		return refuse(ErrErasing, "tenant '%s' is being erased; try again when that is done", tenant)
	}
	return nil
}

// stopTenant cancels the running tasks of a tenant and waits until none runs. Posts
// that were being accepted when it began may start one more.
func (r *Runtime) stopTenant(ctx context.Context, tenant string) error {
	tick := time.NewTicker(stopPollInterval)
	defer tick.Stop()
	for {
		keys, busy := r.tenantTasks(tenant)
		for _, key := range keys {
			runs, err := r.cancelErasedTask(ctx, key)
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

// tenantTasks lists the tasks of a tenant that are in memory or parked, and reports
// whether posts to it are being accepted.
func (r *Runtime) tenantTasks(tenant string) (keys []TaskKey, posts bool) {
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
	slices.SortFunc(keys, func(a, b TaskKey) int { return strings.Compare(a.String(), b.String()) })
	return keys, posts
}

// cancelErasedTask cancels a task if it runs, and reports whether turns of it still
// run.
func (r *Runtime) cancelErasedTask(ctx context.Context, key TaskKey) (runs bool, err error) {
	def, ok := r.definition(key.Tenant, key.Swarm)
	if !ok {
		return false, nil // this host does not run the swarm
	}
	t, err := r.acquireTask(ctx, key, def)
	if isFatal(ctx, err) {
		return false, err
	}
	if err != nil {
		r.setAsideTask(key, err) // the store can remove it nevertheless
		return false, nil
	}
	defer r.releaseTask(t)
	err = r.endTask(t, func(rec Task) (State, string, string, error) {
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

// dropTasks drops the tasks of a tenant that is being erased from memory, and waits for
// what is just written to them. A remaining holder of one holds a task that does not
// exist, and writes nothing of what was.
func (r *Runtime) dropTasks(tenant string) {
	var held []*activeTask
	r.mu.Lock()
	for key, t := range r.tasks {
		if key.Tenant == tenant {
			t.holders, t.holdGeneration = t.holders+1, t.holdGeneration+1
			held = append(held, t)
		}
	}
	r.mu.Unlock()
	for _, t := range held {
		t.commit.Lock()
		r.dropTask(t)
		t.commit.Unlock()
		r.releaseTask(t)
	}
}

// dropTask makes a task in memory one that does not exist. The caller holds t.commit and
// has a hold on t.
func (r *Runtime) dropTask(t *activeTask) {
	t.mu.Lock()
	for _, rn := range t.running {
		rn.killed, rn.dropped = true, true
		rn.cancel(errTaskEnded)
	}
	for _, waiting := range t.waiters {
		for _, ch := range waiting {
			close(ch) // the waiter looks for the answer in the store
		}
	}
	fresh := newActiveTask(t.key, t.def)
	t.loaded, t.exists, t.erased, t.rec = true, false, true, Task{}
	t.queue, t.delayed, t.stash, t.outbox, t.claimedTiers = fresh.queue, nil, nil, nil, fresh.claimedTiers
	t.running, t.waiters = fresh.running, fresh.waiters
	t.states, t.tails, t.openPosts = fresh.states, fresh.tails, fresh.openPosts
	t.notifyFollowers()
	t.mu.Unlock()
	r.afterCommit(t)
}

// ForgetTenant drops what the runtime counts for an erased tenant.
func (r *Runtime) ForgetTenant(tenant string) {
	r.metrics.Forget(tenant)
	r.breakers.forgetTenant(tenant)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.daySpends, tenant)
	for key := range r.parked {
		if key.Tenant == tenant {
			r.dropParked(key)
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
	for key := range r.instanceCounts {
		if key.tenant == tenant {
			r.instanceCounts[key] = &instanceCount{at: r.now()}
		}
	}
}

// dropParked drops the load of a task that is not in memory. The caller holds mu.
func (r *Runtime) dropParked(key TaskKey) {
	if counted, ok := r.parked[key]; ok {
		delete(r.parked, key)
		r.addLoad(key.InstanceKey, load{-counted.running, -counted.waiting})
	}
}
