package swarm

import (
	"context"
	"time"

	"skep/host/internal/swarm/slot"
)

// Prune removes the records of turns, and whole tasks, that ended before the times
// given; a zero time keeps them. A pruning cut short by ctx's end returns its counts
// and goes on with the next call. A post to a task that is being pruned waits until that
// task is out of reach, and then begins a new one.
func (r *Runtime) Prune(ctx context.Context, records, tasks time.Time) (Pruned, error) {
	defer r.releasePruned()
	return r.store.Prune(ctx, PruneRule{Records: records, Tasks: tasks, Keep: func(key TaskKey) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.tasks[key] != nil || !r.share.hasTask(key) {
			return true
		}
		if r.pruning == nil {
			r.pruning, r.pruned = map[TaskKey]bool{}, make(chan struct{})
		}
		r.pruning[key] = true
		return false
	}, Gone: r.releasePruned})
}

// releasePruned lets the posts go on that wait for tasks that are being pruned.
func (r *Runtime) releasePruned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pruning != nil {
		r.pruning = nil
		close(r.pruned)
	}
}

// lockForTask waits until a task is not being pruned, and returns with r.mu held. It is
// refused while the tenant is being erased.
func (r *Runtime) lockForTask(ctx context.Context, key TaskKey) error {
	for {
		r.mu.Lock()
		if err := r.share.checkTask(key); err != nil {
			r.mu.Unlock()
			return err
		}
		if err := r.checkNotErasing(key.Tenant, eraseRemoving); err != nil {
			r.mu.Unlock()
			return err
		}
		gone := r.pruned
		if !r.pruning[key] {
			return nil
		}
		r.mu.Unlock()
		select {
		case <-gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// purgeInterval is the time between two purges of what has expired.
const purgeInterval = time.Hour

// purgeExpired removes submissions and records of gateways that have expired, until ctx
// ends.
func (r *Runtime) purgeExpired(ctx context.Context) {
	tick := time.NewTicker(purgeInterval)
	defer tick.Stop()
	for {
		if r.share.has(slot.Reap) {
			r.purge(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Runtime) purge(ctx context.Context) {
	if n, err := r.store.Purge(ctx, r.now()); err != nil && ctx.Err() == nil {
		r.log.Error("cannot forget what has expired", "err", err)
	} else if n > 0 {
		r.log.Info("forgot what has expired", "count", n)
	}
}
