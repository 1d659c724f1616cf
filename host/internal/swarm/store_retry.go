package swarm

import (
	"context"
	"errors"
	"time"
)

// The pause between two attempts doubles from firstPause to maxPause.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// retryStore repeats a call of the store while it fails: a disk that fails for a moment
// must not end a user's task. It gives up when ctx ends, when the runtime stops, and with
// [ErrQuota] and [ErrErasing]: what was made before an erasure must not be written after
// it. attrs are for the log.
func (r *Runtime) retryStore(ctx context.Context, call func() error, what string, attrs ...any) (err error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if err = call(); err == nil || errors.Is(err, ErrQuota) || errors.Is(err, ErrErasing) {
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
			return err
		case <-r.lifetime.Done():
			return err
		}
	}
}

// commitWithRetry commits a mutation. It goes on until the runtime stops: what the
// mutation writes is decided.
func (r *Runtime) commitWithRetry(m Mutation) error {
	return r.retryStore(r.lifetime, func() error {
		return r.store.Commit(context.WithoutCancel(r.lifetime), m)
	}, "commit", "task_id", m.Task.Key.Task)
}
