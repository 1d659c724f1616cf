package sqlite

import (
	"context"
	"errors"
	"runtime"
	"time"
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
	err := w.applyRepeatedly(ctx, g)
	if isOwnFault(err) {
		g.careful = true
		err = w.applyRepeatedly(ctx, g)
	}
	for i, j := range g.jobs {
		if err != nil {
			g.results[i] = addAdvice(err)
		}
		j.done <- g.results[i]
	}
	w.database.afterGroup(ctx)
}

// applyRepeatedly applies a group again as long as it is known not to be there.
func (w *writer) applyRepeatedly(ctx context.Context, g *group) error {
	waiting := w.database.answersLate() && !g.careful
	for {
		w.tables.expectAnew(waiting)
		err := w.applyGroup(ctx, g)
		switch {
		case errors.Is(err, errUnexpected):
			waiting = false
		case errors.Is(err, errExceeded):
		case !errors.Is(err, errRepeat):
			return err
		}
	}
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
	if err := w.database.beginGroup(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = w.database.rollbackGroup(ctx, err)
			w.tables.forgetCaches()
			w.tables.delta.reset()
		}
	}()
	w.tables.shared.beginAdmissions()
	clear(g.results)
	steps, err := w.applyAll(ctx, g)
	if err != nil {
		return err
	}
	if err := w.tables.shared.check(ctx); err != nil {
		return err
	}
	if err := w.tables.writeFootprints(ctx); err != nil {
		return err
	}
	if err := w.tables.checkExpected(); err != nil {
		return err
	}
	if err := w.tables.shared.checkAdmissions(ctx); err != nil {
		return err
	}
	began := w.now()
	if err := w.database.commitGroup(ctx); err != nil {
		return err
	}
	w.synced = w.now().Sub(began)
	if steps > 0 {
		w.steps.Add(int64(steps))
		w.groups.Add(1)
	}
	if w.onGroup != nil {
		w.onGroup(len(g.jobs), w.now().Sub(g.began))
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
		return w.applyJob(ctx, g.jobs[i], false)
	}
	if _, err := w.save.ExecContext(ctx); err != nil {
		return 0, err
	}
	steps, err = w.applyJob(ctx, g.jobs[i], true)
	if !isOwnFault(err) {
		return steps, err
	}
	g.results[i] = addAdvice(asFence(err))
	w.tables.forgetCaches()
	if _, err = w.undo.ExecContext(ctx); err != nil {
		return 0, err
	}
	return 0, w.releaseChange(ctx)
}

// applyJob applies a change, and with release ends its savepoint.
func (w *writer) applyJob(ctx context.Context, j job, release bool) (steps int, err error) {
	w.tables.shared.use(j.change)
	steps, err = j.apply(ctx, w.tables)
	if err == nil && release {
		err = w.tables.shared.check(ctx)
	}
	if err == nil && release {
		err = w.releaseChange(ctx)
	}
	w.tables.delta.endChange(err == nil)
	if err == nil {
		w.tables.shared.admit(j.change)
	}
	return steps, err
}

// releaseChange ends the savepoint of a change. Its answer is asked for: with it come the
// errors of statements that an engine has kept waiting.
func (w *writer) releaseChange(ctx context.Context) error {
	r, err := w.release.ExecContext(ctx)
	if err == nil {
		_, err = r.RowsAffected()
	}
	return err
}
