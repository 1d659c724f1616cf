package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// countRunningTasks finds the tasks that were running when the last host ended, and
// counts them as running. They are loaded on access; [Runtime.recoverTasks] accesses all
// of them.
func (r *Runtime) countRunningTasks(ctx context.Context) ([]TaskKey, error) {
	if r.share.cluster != nil {
		return nil, nil // they come with the slots
	}
	found, err := r.store.RunningTasks(ctx)
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	return r.countTasks(found), nil
}

// countTasks counts running tasks of the swarms that the host has, and returns them in the order
// in which they are to be loaded.
func (r *Runtime) countTasks(found []RunningTask) []TaskKey {
	found = slices.DeleteFunc(found, func(c RunningTask) bool {
		_, ok := r.definition(c.Tenant, c.Swarm)
		if !ok {
			r.log.Warn("a running task belongs to a swarm that is not configured; it is left as it is",
				"swarm", c.Swarm, "tenant", c.Tenant, "task_id", c.Task)
		}
		return !ok
	})
	keys := make([]TaskKey, len(found))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range found {
		keys[i] = c.TaskKey
		// A post may have loaded it already.
		if _, ok := r.parked[c.TaskKey]; !ok && r.tasks[c.TaskKey] == nil {
			r.parked[c.TaskKey] = load{1, c.Waiting}
			r.addLoad(c.InstanceKey, load{1, c.Waiting})
		}
	}
	return interleaveTasks(keys)
}

// interleaveTasks orders tasks so that tenants alternate, and the instances of a tenant
// among themselves: no tenant waits for all tasks of another.
func interleaveTasks(keys []TaskKey) []TaskKey {
	keys = roundRobin(keys, func(key TaskKey) InstanceKey { return key.InstanceKey })
	return roundRobin(keys, func(key TaskKey) string { return key.Tenant })
}

// roundRobin orders keys by how many keys of the same group precede them.
func roundRobin[P comparable](keys []TaskKey, group func(TaskKey) P) []TaskKey {
	type place struct {
		key   TaskKey
		round int
	}
	rounds := map[P]int{}
	places := make([]place, len(keys))
	for i, key := range keys {
		p := group(key)
		places[i] = place{key, rounds[p]}
		rounds[p]++
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.round, b.round) })
	dealt := make([]TaskKey, len(keys))
	for i, p := range places {
		dealt[i] = p.key
	}
	return dealt
}

// recoverAttempts is how often a task is tried before it is set aside, and
// damagedInterval the time between two attempts at the tasks that are.
const (
	recoverAttempts = 7
	damagedInterval = 30 * time.Second
)

// recoverTasks loads the running tasks of an earlier host while turns run. Each is treated
// as after a commit: it goes on, times out, or has stalled. A task that cannot be read,
// also after some seconds, is set aside, and tried again from time to time: it may be the
// store that fails, and not the task.
func (r *Runtime) recoverTasks(ctx context.Context, keys []TaskKey) error {
	rows, left, why := 0, keys, map[TaskKey]error{}
	for pause, attempt := firstPause, 0; len(left) > 0 && attempt < recoverAttempts; pause, attempt = 2*pause, attempt+1 {
		if attempt > 0 && !sleep(ctx, pause) {
			return nil
		}
		var failed []TaskKey
		for _, key := range left {
			n, err := r.recoverTask(ctx, key)
			if isFatal(ctx, err) {
				return fmt.Errorf("recover task %q: %w", key.Task, err)
			}
			if err != nil {
				failed, why[key] = append(failed, key), err
			}
			rows += n
		}
		left = failed
	}
	for _, key := range left {
		r.setAsideTask(key, why[key])
	}
	if len(keys) > 0 {
		r.log.Info("recovered", "tasks", len(keys), "messages", rows)
	}
	r.openSuspectGate()
	return nil
}

// recoverDamaged tries the tasks that are set aside again, until ctx ends.
func (r *Runtime) recoverDamaged(ctx context.Context) {
	for sleep(ctx, damagedInterval) {
		r.mu.Lock()
		keys := slices.SortedFunc(maps.Keys(r.damaged), func(a, b TaskKey) int { return strings.Compare(a.String(), b.String()) })
		r.mu.Unlock()
		for _, key := range keys {
			if _, err := r.recoverTask(ctx, key); err == nil {
				r.log.Info("a task that was set aside can be read again", "tenant", key.Tenant, "task_id", key.Task)
			}
		}
	}
}

// sleep waits for d; ok is false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) (ok bool) {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// recoverTask loads a task. Tasks that were loaded before are left as they are.
func (r *Runtime) recoverTask(ctx context.Context, key TaskKey) (rows int, err error) {
	t, err := r.acquireExisting(ctx, key)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrErasing) || errors.Is(err, ErrElsewhere) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.dropParked(key)
		delete(r.damaged, key)
		return 0, nil // it has ended and was pruned since, or is being erased
	}
	if err != nil {
		return 0, err
	}
	defer r.releaseTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	rows = t.countPending()
	r.noteSuspects(t)
	mut := t.beginMutation(r.now())
	mut.applyStallRule()
	t.mu.Unlock()
	if mut.ended {
		if err := r.commitMutation(t, mut); !errors.Is(err, ErrErasing) {
			return rows, err
		}
		return 0, nil
	}
	r.afterCommit(t)
	return rows, nil
}

// isFatal reports whether an error concerns more than the one task that met it.
func isFatal(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, ErrDraining) || errors.Is(err, ErrFenced))
}

// setAsideTask removes an unreadable task from the running ones. The store keeps it,
// and no quota counts it. The next access, or [Runtime.recoverDamaged], loads it again.
func (r *Runtime) setAsideTask(key TaskKey, why error) {
	r.log.Error("a running task cannot be read; it is set aside, and everything else goes on. Restore the data directory from a backup, or erase the tenant",
		"tenant", key.Tenant, "swarm", key.Swarm, "instance", key.Instance, "task_id", key.Task, "err", why)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropParked(key)
	if r.damaged == nil {
		r.damaged = map[TaskKey]struct{}{}
	}
	r.damaged[key] = struct{}{}
}

func (r *Runtime) isSetAside(key TaskKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, aside := r.damaged[key]
	return aside
}

// CountDamaged counts the running tasks that are set aside because they cannot be read.
func (r *Runtime) CountDamaged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.damaged)
}
