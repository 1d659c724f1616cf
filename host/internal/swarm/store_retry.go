package swarm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The pause between two attempts doubles from firstPause to maxPause.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// retryStore repeats a call of the store while it fails: a disk that fails for a moment
// must not end a user's task. It gives up when ctx ends, when the runtime stops, whose
// cause the error then has, when the call finds its task ended, and with [ErrQuota] and
// [ErrErasing]: what was made before an erasure must not be written after it. attrs are for
// the log.
func (r *Runtime) retryStore(ctx context.Context, call func() error, what string, attrs ...any) (err error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if err = call(); err == nil || errors.Is(err, ErrQuota) || errors.Is(err, ErrErasing) || err == errTaskEnded {
			return err
		}
		r.log.Error("cannot "+what, append(attrs, "err", err)...)
		if errors.Is(err, ErrFenced) {
			// Another host owns the data; all further writes of this one are lost.
			r.endLifetime(ErrFenced)
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-r.lifetime.Done():
		}
		if stop := context.Cause(r.lifetime); stop != nil {
			return fmt.Errorf("%w: %w", stop, err)
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// hasOutcome reports whether a write that returned err is known to be durable or without
// effect.
func hasOutcome(ctx context.Context, err error) bool {
	for _, decided := range []error{ErrNotFound, ErrDuplicate, ErrFenced, ErrQuota, ErrErasing} {
		if errors.Is(err, decided) {
			return true
		}
	}
	return err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// isStored reports whether a mutation is in the store. No later mutation of the task is.
func (r *Runtime) isStored(m Mutation) (bool, error) {
	snap, err := r.store.Load(r.lifetime, m.Task.Key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && snap.Task.Mutations == m.Task.Mutations && snap.Task.Created.Equal(m.Task.Created), err
}

// commitWithRetry commits a mutation. It goes on until the runtime stops: what the
// mutation writes is decided.
func (r *Runtime) commitWithRetry(m Mutation) error {
	ctx := context.WithoutCancel(r.lifetime)
	return r.retryStore(r.lifetime, func() error {
		err := r.store.Commit(ctx, m)
		if hasOutcome(ctx, err) {
			return err
		}
		m.MarkEncoded() // it may have failed before
		if stored, unread := r.isStored(m); stored && unread == nil {
			return nil
		}
		return err
	}, "commit", "task_id", m.Task.Key.Task)
}

// acceptMutation accepts a mutation with a submission. If the store does not know the
// outcome, it reads until it does: the task in memory must not fall behind the store. The
// caller holds the task's commit lock.
func (r *Runtime) acceptMutation(ctx context.Context, m Mutation, sub Submission) (Submission, error) {
	first, err := r.store.Accept(ctx, m, sub)
	if m.Admission != nil && errors.Is(err, ErrQuota) {
		return first, m.Admission.refusal(r, m.Task.Key.Tenant)
	}
	if hasOutcome(ctx, err) {
		return first, err
	}
	m.MarkEncoded() // it may have failed before
	var stored bool
	unread := r.retryStore(r.lifetime, func() (err error) {
		stored, err = r.isStored(m)
		return err
	}, "find out whether a message was accepted", "task_id", m.Task.Key.Task)
	if unread != nil {
		return first, fmt.Errorf("%w: %w", unread, err)
	}
	if stored {
		return Submission{}, nil
	}
	return first, err
}
