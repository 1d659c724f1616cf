package sqlite

import (
	"context"
	"fmt"
	"runtime"

	"skep/host/internal/swarm"
)

// Bounds of one group. What waits beyond them goes into the next.
const (
	groupChanges = 256
	groupBytes   = 4 << 20
)

// gather takes what is waiting, up to the bounds of a group. The callers of the
// last group have just been told; yielding lets those that have more to write
// get in line, which makes groups half as large again.
func (w *writer) gather(first job) []job {
	runtime.Gosched()
	group, size := []job{first}, first.bytes()
	for len(group) < groupChanges && size < groupBytes {
		select {
		case j, ok := <-w.queue:
			if !ok {
				return group
			}
			group, size = append(group, j), size+j.bytes()
		default:
			return group
		}
	}
	return group
}

// write makes a group durable and tells its callers.
func (w *writer) write(ctx context.Context, group []job) {
	results := make([]error, len(group))
	err := w.attempt(ctx, group, nil)
	if blamesStep(err) {
		err = w.attempt(ctx, group, results)
	}
	for i, j := range group {
		if err != nil {
			results[i] = explain(err)
		}
		j.done <- results[i]
	}
	w.wal.trim(ctx, w.conn)
}

// attempt applies a group in one transaction. Without results the first error
// ends it, which is the fast way; with results each change has a savepoint, and
// one that is to blame for its own error does not harm the others.
func (w *writer) attempt(ctx context.Context, group []job, results []error) (err error) {
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The engine may have rolled back by itself: then this fails, and
			// says nothing new.
			_, _ = w.rollback.ExecContext(ctx)
			w.tables.forget()
			w.tables.tally.reset()
		}
	}()
	if err := w.checkEpoch(ctx); err != nil {
		return err
	}
	var steps int
	for i, j := range group {
		n, err := w.applyOne(ctx, j, results, i)
		if err != nil {
			return err
		}
		steps += n
	}
	if err := w.tables.settle(ctx); err != nil {
		return err
	}
	if _, err := w.commit.ExecContext(ctx); err != nil {
		return err
	}
	if steps > 0 {
		w.steps.Add(int64(steps))
		w.groups.Add(1)
	}
	return nil
}

func (w *writer) applyOne(ctx context.Context, j job, results []error, i int) (steps int, err error) {
	if results == nil {
		steps, err = j.apply(ctx, w.tables)
		w.tables.tally.keep(err == nil)
		return steps, err
	}
	if _, err := w.save.ExecContext(ctx); err != nil {
		return 0, err
	}
	steps, err = j.apply(ctx, w.tables)
	w.tables.tally.keep(err == nil)
	if blamesStep(err) {
		results[i], steps = explain(err), 0
		w.tables.forget()
		_, err = w.undo.ExecContext(ctx)
	}
	if err != nil {
		return 0, err
	}
	_, err = w.release.ExecContext(ctx)
	return steps, err
}

// checkEpoch refuses to write into a file that another host has taken over.
func (w *writer) checkEpoch(ctx context.Context) error {
	var epoch int64
	if err := w.fence.QueryRowContext(ctx).Scan(&epoch); err != nil {
		return err
	}
	if epoch != w.epoch {
		return fmt.Errorf("%w: its epoch is %d, ours %d", swarm.ErrFenced, epoch, w.epoch)
	}
	return nil
}
