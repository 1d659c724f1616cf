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
	// seen is the reader's place in the task's air.
	seen int64
	wake chan struct{}
	// outlasts says that a pause of the task is not the feed's end.
	outlasts bool
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
	f := &Feed{rt: r, task: t, after: after, wake: make(chan struct{}, 1)}
	t.mu.Lock()
	end := t.rec.Cursor
	if after <= end {
		t.air.join(f)
	}
	t.mu.Unlock()
	if after > end {
		r.release(t)
		return nil, refuse(ErrInvalid, "there is no event %d; the log of task '%s' ends at %d", after, key.Task, end)
	}
	return f, nil
}

// OutlastPauses makes Next wait while the task is paused, where it would end. It is
// called before Next.
func (f *Feed) OutlastPauses() { f.outlasts = true }

// over reports whether a task in this state logs nothing more for the feed.
func (f *Feed) over(s State) bool {
	return s != StateRunning && (s != StatePaused || !f.outlasts)
}

// Next returns the next events, waiting for them. It ends with io.EOF when the
// task has ended and all its events were read, with ErrDraining when the host
// stops, and with ctx's cause. Events that the log does not have, because they
// are volatile, have no Seq and come between those of the log when they happen;
// a reader that is slow loses some of them.
func (f *Feed) Next(ctx context.Context) ([]Event, error) {
	for {
		f.task.mu.Lock()
		changed, cursor, over := f.task.changed, f.task.rec.Cursor, f.over(f.task.rec.State)
		shown, limit := f.task.air.next(f)
		f.task.mu.Unlock()
		if len(shown) > 0 {
			return shown, nil
		}
		if cursor > f.after {
			// What was committed since must wait: a turn's pieces come before
			// the event that sums them up.
			most := min(feedBatch, cursor-f.after, limit-f.after)
			events, err := f.rt.store.Events(ctx, f.task.key, f.after, int(most))
			if err != nil {
				return nil, err
			}
			if len(events) > 0 {
				f.after = events[len(events)-1].Seq
				return events, nil
			}
		} else if over {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-f.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-f.rt.stopped:
			return nil, ErrDraining
		}
	}
}

// Close lets go of the task.
func (f *Feed) Close() {
	f.task.mu.Lock()
	f.task.air.leave(f)
	f.task.mu.Unlock()
	f.rt.release(f.task)
}
