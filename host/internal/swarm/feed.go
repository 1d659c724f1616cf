package swarm

import (
	"context"
	"io"
)

// Feed reads a task's log from a position, and goes on as it grows. It is used
// by one goroutine at a time and must be closed.
type Feed struct {
	rt    *Runtime
	task  *live
	after int64
}

// feedBatch bounds what one Next reads; an event may carry a whole body.
const feedBatch = 32

// Follow returns a feed of the events after a cursor, 0 for all. The task must
// exist, and so must the event the cursor names.
func (r *Runtime) Follow(ctx context.Context, key TaskKey, after int64) (*Feed, error) {
	t, err := r.existing(ctx, key)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	end := t.rec.Cursor
	t.mu.Unlock()
	if after > end {
		r.release(t)
		return nil, refuse(ErrInvalid, "there is no event %d; the log of task '%s' ends at %d", after, key.Task, end)
	}
	return &Feed{r, t, after}, nil
}

// Next returns the next events, waiting for them. It ends with io.EOF when the
// task has ended and all its events were read, with ErrDraining when the host
// stops, and with ctx's cause.
func (f *Feed) Next(ctx context.Context) ([]Event, error) {
	for {
		f.task.mu.Lock()
		changed, rec := f.task.changed, f.task.rec
		f.task.mu.Unlock()
		if rec.Cursor > f.after {
			events, err := f.rt.store.Events(ctx, f.task.key, f.after, feedBatch)
			if err != nil {
				return nil, err
			}
			if len(events) > 0 {
				f.after = events[len(events)-1].Seq
				return events, nil
			}
		} else if rec.State != StateRunning {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-f.rt.stopped:
			return nil, ErrDraining
		}
	}
}

// Close lets go of the task.
func (f *Feed) Close() { f.rt.release(f.task) }
