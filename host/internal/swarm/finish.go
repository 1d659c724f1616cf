package swarm

import (
	"context"
	"fmt"

	"skep/spec/mail"
)

// Cancel ends a task at its owner's wish. It is refused with ErrNotFound for
// an unknown task and with ErrConflict for one that has ended.
func (r *Runtime) Cancel(ctx context.Context, key TaskKey, by string) error {
	t, err := r.existing(ctx, key)
	if err != nil {
		return err
	}
	defer r.release(t)
	return r.stop(t, func(rec Task) (State, string, string, error) {
		if rec.State.Ended() {
			return "", "", "", refuse(ErrConflict, "task '%s' has already ended (%s)", key.Task, rec.State)
		}
		return StateCancelled, mail.SubjectTaskCancelled, "The task was cancelled by " + by + ".", nil
	})
}

// expire ends a task whose deadline has passed.
func (r *Runtime) expire(ctx context.Context, key TaskKey) {
	t, err := r.existing(ctx, key)
	if err != nil {
		r.log.Error("cannot time a task out", "task_id", key.Task, "err", err)
		return
	}
	defer r.release(t)
	err = r.stop(t, func(rec Task) (State, string, string, error) {
		if rec.State.Ended() || rec.Deadline.IsZero() || rec.Deadline.After(r.now()) {
			return "", "", "", errNotDue
		}
		return StateTimedOut, mail.SubjectTaskTimeout,
			fmt.Sprintf("The task timed out: it had %s; raise [limits] task_timeout or send kwargs.timeout.", rec.Timeout), nil
	})
	if err != nil && err != errNotDue {
		r.log.Error("cannot time a task out", "task_id", key.Task, "err", err)
	}
}

var errNotDue = fmt.Errorf("not due")

// existing returns a task that the store or memory knows.
func (r *Runtime) existing(ctx context.Context, key TaskKey) (*live, error) {
	def, ok := r.definition(key.Tenant, key.Swarm)
	if !ok {
		return nil, refuse(ErrNotFound, "swarm '%s' not found", key.Swarm)
	}
	t, err := r.acquire(ctx, key, def)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	exists := t.exists
	t.mu.Unlock()
	if !exists {
		r.release(t)
		return nil, refuse(ErrNotFound, "task '%s' not found", key.Task)
	}
	return t, nil
}

// stop ends a task by a system completion that decide chooses.
func (r *Runtime) stop(t *live, decide func(Task) (state State, subject, body string, err error)) error {
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	state, subject, body, err := decide(t.rec)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	s := t.begin(r.now())
	s.endBySystem(state, subject, body)
	t.mu.Unlock()
	if !r.write(s.Step) {
		return ErrDraining
	}
	t.mu.Lock()
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
	return nil
}
