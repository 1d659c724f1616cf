package swarm

import (
	"context"
	"errors"
	"fmt"
)

// recover takes up the tasks that were running when the last host ended. Each
// is looked at as after a commit: it goes on, times out, or has stalled.
func (r *Runtime) recover(ctx context.Context) error {
	keys, err := r.store.Claim(ctx)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
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
	return nil
}

func (r *Runtime) resume(ctx context.Context, key TaskKey) (rows int, err error) {
	t, err := r.existing(ctx, key)
	if errors.Is(err, ErrNotFound) {
		r.log.Warn("a running task belongs to a swarm that is not configured; it is left as it is",
			"swarm", key.Swarm, "tenant", key.Tenant, "task_id", key.Task)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer r.release(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	if t.counted.running > 0 {
		// A post has come first and taken it up.
		t.mu.Unlock()
		return 0, nil
	}
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
