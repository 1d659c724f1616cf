package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FailForgotten fails the open requests that another swarm took before it was started.
// It is for a swarm that keeps its tasks in memory: no answer to them will come. An
// error means that it has to be called again. A task that is set aside as damaged is left
// out.
func (r *Runtime) FailForgotten(ctx context.Context, peer string, started time.Time) error {
	running, err := r.store.RunningTasks(ctx)
	if err != nil {
		return fmt.Errorf("find the tasks that wait for swarm '%s': %w", peer, err)
	}
	var left []error
	for _, task := range running {
		switch err := r.failForgottenIn(ctx, task.TaskKey, peer, started); {
		case isFatal(ctx, err):
			return err
		case err != nil && !r.isSetAside(task.TaskKey):
			left = append(left, fmt.Errorf("task '%s': %w", task.Task, err))
		}
	}
	return errors.Join(left...)
}

// failForgottenIn does it for one task.
func (r *Runtime) failForgottenIn(ctx context.Context, key TaskKey, peer string, started time.Time) error {
	t, err := r.acquireExisting(ctx, key)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrErasing) || errors.Is(err, ErrElsewhere) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	mut := t.beginMutation(r.now())
	failed := mut.failForgotten(peer, started)
	mut.applyStallRule()
	t.mu.Unlock()
	if failed == 0 {
		return nil
	}
	r.log.Warn("a swarm has forgotten what it was asked", "peer", peer, "task_id", key.Task, "requests", failed)
	return r.commitMutation(t, mut)
}

// failForgotten closes the requests that a swarm took before it was started, and counts
// them.
func (mut *mutationBuilder) failForgotten(peer string, started time.Time) (failed int) {
	if mut.Task.State != StateRunning {
		return 0
	}
	for _, q := range mut.Task.requestsTo(peer) {
		if q.Taken.IsZero() || !q.Taken.Before(started) {
			continue
		}
		failed++
		mut.failRequest(q, fmt.Sprintf("Swarm %q was started again after it took the request to %s, and keeps its tasks in memory only: there will be no answer. Send it again if it may be done twice.",
			peer, q.To), "")
	}
	return failed
}

// markRequestTaken notes when another swarm took the request of an outbox message.
func (mut *mutationBuilder) markRequestTaken(msg OutboxMessage) {
	request, ok := msg.openRequest()
	for i := range mut.Task.Requests {
		if q := &mut.Task.Requests[i]; ok && q.ID == request.ID && q.To == request.To {
			q.Taken = mut.now
		}
	}
}
