package sqlite

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"skep/host/internal/swarm"
)

// Bounds of one group. What waits beyond them goes into the next.
const (
	groupChanges = 256
	groupBytes   = 4 << 20
)

// group is what one transaction makes durable. It takes changes in while it is
// written, so that who comes meanwhile need not wait for the next.
type group struct {
	jobs  []job
	bytes int
	began time.Time
	// shared: it holds changes of several tenants.
	shared bool
	// careful gives each change a savepoint: one that is to blame for its own
	// error does not harm the others, whose results are here.
	careful bool
	results []error
}

func (g *group) add(j job) {
	g.shared = g.shared || len(g.jobs) > 0 && g.jobs[0].tenant != j.tenant
	g.jobs, g.results, g.bytes = append(g.jobs, j), append(g.results, nil), g.bytes+j.bytes()
}

// writeGroup makes a group durable, which begins with first, and wakes its callers.
func (w *writer) writeGroup(ctx context.Context, first job) {
	// The callers of the last group have just been told; yielding lets those
	// that have more to write get in line, which makes groups half as large
	// again.
	runtime.Gosched()
	g := &group{}
	g.add(first)
	err := w.applyGroup(ctx, g)
	if isOwnFault(err) {
		g.careful = true
		err = w.applyGroup(ctx, g)
	}
	for i, j := range g.jobs {
		if err != nil {
			g.results[i] = addAdvice(err)
		}
		j.done <- g.results[i]
	}
	w.wal.trim(ctx, w.conn)
}

// growGroup adds the next change to a group that has room for it. As soon as tenants
// share the group, no change waits longer for the others than for the disk: a group takes in changes for as long as the last one took to sync. That
// writes at half the speed of the disk at least.
func (w *writer) growGroup(g *group) bool {
	switch {
	case len(g.jobs) >= groupChanges, g.bytes >= groupBytes:
		return false
	case g.shared && w.now().Sub(g.began) >= w.synced:
		return false
	}
	j, ok, _ := w.queue.takeJob()
	if ok {
		g.add(j)
	}
	return ok
}

// applyGroup applies a group in one transaction. The first error ends it, but for
// those that a careful group lays on their own change.
func (w *writer) applyGroup(ctx context.Context, g *group) (err error) {
	g.began = w.now()
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The engine may have rolled back by itself: then this fails, and
			// says nothing new.
			_, _ = w.rollback.ExecContext(ctx)
			w.tables.forgetCaches()
			w.tables.delta.reset()
		}
	}()
	if err := w.checkEpoch(ctx); err != nil {
		return err
	}
	steps, err := w.applyAll(ctx, g)
	if err != nil {
		return err
	}
	if err := w.tables.writeFootprints(ctx); err != nil {
		return err
	}
	began := w.now()
	if _, err := w.commit.ExecContext(ctx); err != nil {
		return err
	}
	w.synced = w.now().Sub(began)
	if steps > 0 {
		w.steps.Add(int64(steps))
		w.groups.Add(1)
	}
	return nil
}

func (w *writer) applyAll(ctx context.Context, g *group) (steps int, err error) {
	for i := 0; i < len(g.jobs) || w.growGroup(g); i++ {
		n, err := w.applyOne(ctx, g, i)
		if err != nil {
			return 0, err
		}
		steps += n
	}
	return steps, nil
}

func (w *writer) applyOne(ctx context.Context, g *group, i int) (steps int, err error) {
	if !g.careful {
		return w.applyJob(ctx, g.jobs[i])
	}
	if _, err := w.save.ExecContext(ctx); err != nil {
		return 0, err
	}
	steps, err = w.applyJob(ctx, g.jobs[i])
	if isOwnFault(err) {
		g.results[i], steps = addAdvice(err), 0
		w.tables.forgetCaches()
		_, err = w.undo.ExecContext(ctx)
	}
	if err != nil {
		return 0, err
	}
	_, err = w.release.ExecContext(ctx)
	return steps, err
}

func (w *writer) applyJob(ctx context.Context, j job) (steps int, err error) {
	steps, err = j.apply(ctx, w.tables)
	w.tables.delta.endChange(err == nil)
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
