package swarm

import (
	"context"
	"io"
)

// Feed reads a task's log from a cursor, and follows its growth. It is used by one
// goroutine at a time and must be closed.
type Feed struct {
	rt    *Runtime
	task  *activeTask
	after int64
	// seen is the reader's position in the task's volatile events.
	seen int64
	// begin are the events before them; see BeginWithRunningTurns.
	begin []volatileEvent
	wake  chan struct{}
	// replaced is closed when check is to be called, which may end the feed; nil for never.
	replaced <-chan struct{}
	check    func() error
	// staysOpen is set when a pause of the task does not end the feed.
	staysOpen bool
}

// feedBatch bounds the events that one Next reads; an event may carry a whole body.
const feedBatch = 32

// Follow returns a feed of the events after a cursor, 0 for all. The task and the event
// at the cursor must exist. At a host that has stopped, a reader who would wait gets ErrDraining: an empty feed
// would mean that the log has ended, while another host that shares the store may go on with it.
func (r *Runtime) Follow(ctx context.Context, key TaskKey, after int64) (*Feed, error) {
	t, err := r.acquireExisting(ctx, key)
	if err != nil {
		return nil, err
	}
	f := &Feed{rt: r, task: t, after: after, wake: make(chan struct{}, 1)}
	t.mu.Lock()
	end, waits := t.rec.Cursor, after == t.rec.Cursor && !f.isOver(t.rec.State)
	if after <= end {
		t.volatile.addReader(f)
	}
	t.mu.Unlock()
	if after > end {
		r.releaseTask(t)
		return nil, refuse(ErrInvalid, "there is no event %d; the log of task '%s' ends at %d", after, key.Task, end)
	}
	select {
	case <-r.stopped:
		if waits {
			f.Close()
			return nil, ErrDraining
		}
	default:
	}
	return f, nil
}

// StayOpenDuringPauses makes Next wait during a pause of the task, which would else end the
// feed. It is called before Next.
func (f *Feed) StayOpenDuringPauses() { f.staysOpen = true }

// CheckAtReplacements makes Next fail with an error of check, which is called when definitions have been
// replaced since the call.
func (f *Feed) CheckAtReplacements(check func() error) {
	f.check, f.replaced = check, f.rt.defs.nextReplacement()
}

// BeginWithRunningTurns makes the feed show what the running turns have emitted before it was
// opened, in one volatile event for each of them. It is called before Next.
func (f *Feed) BeginWithRunningTurns() {
	f.task.mu.Lock()
	defer f.task.mu.Unlock()
	f.task.volatile.addReader(f) // what came since Follow is in the events, too
	f.begin = f.task.emittedByRunning(f.rt.now())
}

// isOver reports whether a task in this state logs nothing more for the feed.
func (f *Feed) isOver(s State) bool {
	return s != StateRunning && (s != StatePaused || !f.staysOpen)
}

// Next waits for the next events. It ends with io.EOF when the task has ended and all
// its events were read, with ErrDraining when the host stops, and with ctx's cause.
// Volatile events have no Seq; they come between events of the log in the order in
// which they happen. A slow reader loses some of them.
func (f *Feed) Next(ctx context.Context) ([]Event, error) {
	for {
		f.task.mu.Lock()
		changed, cursor, over := f.task.changed, f.task.rec.Cursor, f.isOver(f.task.rec.State)
		shown, limit := f.task.volatile.takeEvents(f)
		moved := f.task.checkMoved()
		f.task.mu.Unlock()
		if moved != nil {
			return nil, moved
		}
		if len(shown) > 0 {
			return shown, nil
		}
		if cursor > f.after {
			// Later commits must wait: the volatile events of a turn come before the
			// event that sums them up.
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
		case <-f.replaced:
			f.replaced = f.rt.defs.nextReplacement()
			if err := f.check(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-f.rt.stopped:
			return nil, ErrDraining
		}
	}
}

// Ended reports whether the task has ended and its last event was read.
func (f *Feed) Ended() bool {
	f.task.mu.Lock()
	defer f.task.mu.Unlock()
	return f.task.rec.State.Ended() && f.task.rec.Cursor <= f.after
}

// Close ends the feed and releases the task.
func (f *Feed) Close() {
	f.task.mu.Lock()
	f.task.volatile.removeReader(f)
	f.task.mu.Unlock()
	f.rt.releaseTask(f.task)
}
