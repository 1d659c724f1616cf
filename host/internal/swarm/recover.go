package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// claim finds the tasks that were running when the last host ended. From then on
// each counts as running, and is loaded when somebody asks for it; [Runtime.recover]
// asks for all of them.
func (r *Runtime) claim(ctx context.Context) ([]TaskKey, error) {
	keys, err := r.store.Claim(ctx)
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	keys = slices.DeleteFunc(keys, func(key TaskKey) bool {
		_, ok := r.definition(key.Tenant, key.Swarm)
		if !ok {
			r.log.Warn("a running task belongs to a swarm that is not configured; it is left as it is",
				"swarm", key.Swarm, "tenant", key.Tenant, "task_id", key.Task)
		}
		return !ok
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		// A post may have come first.
		if _, ok := r.parked[key]; !ok && r.tasks[key] == nil {
			r.parked[key] = load{running: 1}
			r.carry(key.InstanceKey, load{running: 1})
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
// as after a commit: it goes on, times out, or has stalled.
func (r *Runtime) recover(ctx context.Context, keys []TaskKey) error {
	rows := 0
	for _, key := range keys {
		n, err := r.resume(ctx, key)
		if err != nil {
			return fmt.Errorf("recover task %q: %w", key.Task, err)
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
