package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"skep/host/internal/swarm"
)

// pausedTask is the stored record of a paused task and its place in the list.
type pausedTask struct {
	key      swarm.TaskKey
	iid, tid int64
	body     []byte
}

// PausedTasks implements [swarm.TaskLog].
func (s *Store) PausedTasks(ctx context.Context, within swarm.InstanceKey, after string, limit int) (tasks []swarm.Task, next string, err error) {
	var iid, tid int64
	if after != "" {
		if n, err := fmt.Sscanf(after, "%d.%d", &iid, &tid); n != 2 || err != nil || after != pausedPlace(iid, tid) {
			return nil, "", &swarm.Refusal{Kind: swarm.ErrInvalid, Text: "the place where the list goes on is none that an earlier page has named"}
		}
	}
	kept, more, err := s.storedPaused(ctx, within, iid, tid, max(limit, 0))
	if err != nil || len(kept) == 0 {
		return nil, "", wrapError("list paused tasks of", within.Tenant, err)
	}
	tasks, err = decodeReadable(s.log, kept, func(p pausedTask) (task swarm.Task, err error) {
		err = s.opener(p.key).read(p.body, spot{inTasks, "", 0}, &task)
		return task, wrapError("read task", p.key.String(), err)
	})
	if last := kept[len(kept)-1]; more {
		next = pausedPlace(last.iid, last.tid)
	}
	return tasks, next, wrapError("list paused tasks of", within.Tenant, err)
}

// pausedPlace names a place in the list of paused tasks.
func pausedPlace(iid, tid int64) string { return fmt.Sprintf("%d.%d", iid, tid) }

// storedPaused reads a page of paused tasks, and whether others follow.
func (s *Store) storedPaused(ctx context.Context, within swarm.InstanceKey, iid, tid int64, limit int) (page []pausedTask, more bool, err error) {
	if limit == 0 {
		return nil, false, nil
	}
	q := s.readers.query(s.readers.paused, append(instanceArgs(within), iid, tid, limit+1)...)
	page, err = readRowsUntil(ctx, q, func() func(*sql.Rows) (pausedTask, bool, error) {
		tasks, left := limit, swarm.PageBytes
		return func(rows *sql.Rows) (p pausedTask, goOn bool, err error) {
			first := left == swarm.PageBytes
			p.key, err = scanTask(rows, &p.iid, &p.tid, &p.body)
			left -= contentSize(p.body)
			tasks--
			more = tasks < 0 || left < 0 && !first
			return p, !more, err
		}
	})
	return page, more, err
}
