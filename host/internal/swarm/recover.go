package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// claim finds the tasks that were running when the last host ended. From then on
// each counts as running, with what waits in it, and is loaded when somebody asks for it; [Runtime.recover]
// asks for all of them.
func (r *Runtime) claim(ctx context.Context) ([]TaskKey, error) {
	found, err := r.store.Claim(ctx)
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	found = slices.DeleteFunc(found, func(c Claimed) bool {
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
		// A post may have come first.
		if _, ok := r.parked[c.TaskKey]; !ok && r.tasks[c.TaskKey] == nil {
			r.parked[c.TaskKey] = load{1, c.Waiting}
			r.carry(c.InstanceKey, load{1, c.Waiting})
		}
	}
	return takeTurns(keys), nil
}

// takeTurns orders tasks so that tenants take turns, and the instances of a tenant
// among themselves: nobody's tasks wait for all those of another.
func takeTurns(keys []TaskKey) []TaskKey {
	keys = deal(keys, func(key TaskKey) InstanceKey { return key.InstanceKey })
	return deal(keys, func(key TaskKey) string { return key.Tenant })
}

// deal orders keys by how many of the same party come before them.
func deal[P comparable](keys []TaskKey, party func(TaskKey) P) []TaskKey {
	type place struct {
		key   TaskKey
		round int
	}
	rounds := map[P]int{}
	places := make([]place, len(keys))
	for i, key := range keys {
		p := party(key)
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

// recover takes up the tasks that were claimed, while turns run. Each is looked at
// as after a commit: it goes on, times out, or has stalled. One that cannot be read
// is set aside: it must not keep all others from going on.
func (r *Runtime) recover(ctx context.Context, keys []TaskKey) error {
	rows := 0
	for _, key := range keys {
		n, err := r.resume(ctx, key)
		if endsRun(ctx, err) {
			return fmt.Errorf("recover task %q: %w", key.Task, err)
		}
		if err != nil {
			r.setAside(key, err)
		}
		rows += n
	}
	if len(keys) > 0 {
		r.log.Info("recovered", "tasks", len(keys), "messages", rows)
	}
	r.openSuspects()
	return nil
}

// resume takes up a task. It is right as well for one that somebody has taken up
// before.
func (r *Runtime) resume(ctx context.Context, key TaskKey) (rows int, err error) {
	t, err := r.existing(ctx, key)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrErasing) {
		return 0, nil // it has ended since, and is gone
	}
	if err != nil {
		return 0, err
	}
	defer r.release(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	rows = t.pending()
	r.seeSuspects(t)
	s := t.begin(r.now())
	s.settle()
	t.mu.Unlock()
	if s.ended {
		if !r.write(s.Step) {
			return rows, ErrDraining
		}
		t.mu.Lock()
		t.apply(s)
		t.mu.Unlock()
	}
	r.applied(t)
	return rows, nil
}

// endsRun reports whether an error is not that of the task alone that met it.
func endsRun(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, ErrDraining) || errors.Is(err, ErrFenced))
}

// setAside takes a task that cannot be read out of what runs. The store keeps it
// as it is, and it counts for nobody's quota. Whoever asks for it makes another
// try, and with luck takes it up.
func (r *Runtime) setAside(key TaskKey, why error) {
	r.log.Error("a running task cannot be read; it is set aside, and everything else goes on. Restore the data directory from a backup, or erase the tenant",
		"tenant", key.Tenant, "swarm", key.Swarm, "instance", key.Instance, "task_id", key.Task, "err", why)
	r.mu.Lock()
	defer r.mu.Unlock()
	if counted, ok := r.parked[key]; ok {
		delete(r.parked, key)
		r.carry(key.InstanceKey, load{-counted.running, -counted.waiting})
	}
	if r.damaged == nil {
		r.damaged = map[TaskKey]struct{}{}
	}
	r.damaged[key] = struct{}{}
}

// Damaged counts the running tasks that are set aside because they cannot be read.
func (r *Runtime) Damaged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.damaged)
}
