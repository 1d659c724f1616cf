package swarm

import (
	"context"
	"time"
)

// Prune forgets the records of turns, and whole tasks, that ended before the
// times given; a zero time keeps them. What is cut short by ctx's end is counted
// and goes on with the next call. A post to a task that is on its way out waits
// until it is gone, and begins a new one.
func (r *Runtime) Prune(ctx context.Context, records, tasks time.Time) (Pruned, error) {
	gone := make(chan struct{})
	going := map[TaskKey]bool{}
	r.mu.Lock()
	r.gone = gone
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.going = nil
		r.mu.Unlock()
		close(gone)
	}()
	return r.store.Prune(ctx, PruneRule{Records: records, Tasks: tasks, Keep: func(key TaskKey) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.tasks[key] != nil {
			return true
		}
		going[key] = true
		r.going = going
		return false
	}})
}

// stays waits until a task is not on its way out, and returns with r.mu held. It
// is refused while its tenant is being erased.
func (r *Runtime) stays(ctx context.Context, key TaskKey) error {
	for {
		r.mu.Lock()
		if err := r.lives(key.Tenant, vanishing); err != nil {
			r.mu.Unlock()
			return err
		}
		gone := r.gone
		if !r.going[key] {
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
