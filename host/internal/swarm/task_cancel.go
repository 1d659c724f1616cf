package swarm

import (
	"context"
	"fmt"

	"skep/spec/mail"
)

// CancelTask ends a task by its owner. It is refused with ErrNotFound for an unknown
// task and with ErrConflict for an ended one.
func (r *Runtime) CancelTask(ctx context.Context, key TaskKey, by string) error {
	t, err := r.acquireExisting(ctx, key)
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	return r.endTask(t, func(rec Task) (State, string, string, error) {
		if rec.State.Ended() {
			return "", "", "", refuse(ErrConflict, "task '%s' has already ended (%s)", key.Task, rec.State)
		}
		return StateCancelled, mail.SubjectTaskCancelled, "The task was cancelled by " + by + ".", nil
	})
}

// expireTask ends a task whose deadline has passed.
func (r *Runtime) expireTask(t *activeTask) {
	err := r.endTask(t, func(rec Task) (State, string, string, error) {
		if rec.State.Ended() || rec.Deadline.IsZero() || rec.Deadline.After(r.now()) {
			return "", "", "", errNotDue
		}
		return StateTimedOut, mail.SubjectTaskTimeout,
			fmt.Sprintf("The task timed out: it had %s; raise [limits] task_timeout or send kwargs.timeout.", rec.Timeout), nil
	})
	if err != nil && err != errNotDue {
		r.log.Error("cannot time a task out", "task_id", t.key.Task, "err", err)
	}
}

var errNotDue = fmt.Errorf("not due")

// acquireExisting returns a task that exists in memory or in the store.
func (r *Runtime) acquireExisting(ctx context.Context, key TaskKey) (*activeTask, error) {
	def, ok := r.definition(key.Tenant, key.Swarm)
	if !ok {
		return nil, refuse(ErrNotFound, "swarm '%s' not found", key.Swarm)
	}
	t, err := r.acquireTask(ctx, key, def)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	exists, moved := t.exists, t.checkMoved()
	t.mu.Unlock()
	if moved != nil {
		r.releaseTask(t)
		return nil, moved
	}
	if !exists {
		r.releaseTask(t)
		return nil, refuse(ErrNotFound, "task '%s' not found", key.Task)
	}
	return t, nil
}

// endTask ends a task by the system completion that decide returns.
func (r *Runtime) endTask(t *activeTask, decide func(Task) (state State, subject, body string, err error)) error {
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	if err := t.checkMoved(); err != nil {
		t.mu.Unlock()
		return err
	}
	state, subject, body, err := decide(t.rec)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	mut := t.beginMutation(r.now())
	mut.endBySystem(state, subject, body)
	t.mu.Unlock()
	return r.commitMutation(t, mut)
}
